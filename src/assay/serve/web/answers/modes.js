// How thorough a question is dealt with, in words.

export const MODES = {
  quick: ["Quick", "About three rounds of searching"],
  balanced: ["Balanced", "About five rounds of searching"],
  thorough: ["Thorough", "About ten rounds of searching"],
};
