// Code that does nothing, or not what it says. Names that do not exist are found by tsc.
import js from "@eslint/js";

const MORE = [
  "array-callback-return",
  "eqeqeq",
  "no-duplicate-imports",
  "no-else-return",
  "no-eval",
  "no-implied-eval",
  "no-lonely-if",
  "no-template-curly-in-string",
  "no-unneeded-ternary",
  "no-unused-expressions",
  "no-useless-concat",
  "no-useless-rename",
  "no-useless-return",
  "no-var",
  "object-shorthand",
  "prefer-const",
  "prefer-template",
];

export default [
  js.configs.recommended,
  { rules: { ...Object.fromEntries(MORE.map((rule) => [rule, "error"])), "no-undef": "off" } },
];
