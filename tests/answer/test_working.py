"""Workings: what computes is proved, what does not is refused with a reason, and no expression does harm."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from assay.answer.checking.working import Proof, basis, prove
from assay.core.types import Basis, Operand, Working

STORES = """Harbour, annual report
RETAIL STORES NUMBER
Harbour Brand factory stores 213
Harbour Brand in-line stores (including employee-only stores) 74
Lantern stores (including factory stores) 82
TOTAL 369"""
INCOME = """Statements of income
(amounts in millions, except per share data)
2021 2020
Net sales $ 192,052 $ 163,220
Membership fees 3,877 3,541
Total revenue 195,929 166,761
Operating income 6,708 5,435
Other operating income 12 13
Interest expense (171) (160)
Shares used in calculation (000’s)
Diluted 444,346 443,901"""
FLIGHTS = """Deliveries as of December 31 were as follows:
737 747 767 Total
2022
Cumulative deliveries 8,132 1,572 1,271
Deliveries 387 5 33 480
2021
Cumulative deliveries 7,745 1,567 1,238
Deliveries 263 7 32 340"""
PROSE = """The record date is September 7, 2023, and the payment date is September 27, 2023.
The lease of Nitra ends on 31 Oct 2025, that of Tavorn on 1 Jan 2026, and that of Orrin in March 2026.
The link was down from 21 April, 19:30, until 22 April, 03:05. Eight sensors failed; 1,300 values were late.
Sales were $1.2 billion in Europe, $300 million in Asia and $25 thousand elsewhere. About 71% is due by 2026.
The rate fell from 5.39E-05 to 1.24E-05. Die Kosten: 1.500 Euro, im Mittel 27,5 Euro. On 03/04/2024 it closed."""
TEXTS = {"s": STORES, "i": INCOME, "f": FLIGHTS, "p": PROSE}


def working(expression: str, operands: str, result: str, unit: str = "") -> Working:
    """Operands are written `words@key`, separated by bars."""
    parts = (each.rpartition("@") for each in operands.split("|") if each)
    return Working(expression, tuple(Operand(words, key) for words, _, key in parts), result, unit)


GOOD = [
    ("Factory stores are 57.7% of all.", "213/369*100", "213@s|369@s", "57.7", "%"),
    ("Factory stores are 57.7% of all.", "213 / 369", "213@s|369@s", "57.7%", ""),
    ("Income was 3.4 % of revenue.", "6,708 ÷ 195,929 × 100", "6,708@i|195,929@i", "3.4", "%"),
    ("Income was about 3 % of revenue.", "6708/195929*100", "6,708@i|195,929@i", "3", "percent"),
    ("Revenue fell by 14.9%.", "change(195929, 166761)", "195,929@i|166,761@i", "14.9", "%"),
    ("Revenue fell by 14.9%.", "change(195929, 166761)", "195,929@i|166,761@i", "-14.9", "%"),
    ("Revenue was $362.7 billion in two years.", "195929 + 166761", "195,929@i|166,761@i", "362.7", "$ billion"),
    ("Revenue was $362,690 million.", "195929 + 166761", "195,929@i|166,761@i", "362,690", "$ million"),
    ("Revenue was $362,690,000,000.", "195929 + 166761", "195,929@i|166,761@i", "362690", "$ million"),
    ("Revenue was $362.7 billion.", "sum(195929, 166761)", "195,929@i|166,761@i", "362,690", "$ million"),
    ("Revenue was $362.7 billion.", "(195929 + 166761) / 1000", "195,929@i|166,761@i", "362.7", "billion"),
    ("Expense rose by 11.", "171 − 160", "(171)@i|(160)@i", "11", ""),
    ("Expense rose by 11.", "-160 - -171", "-160@i|-171@i", "11", ""),
    ("Sales in Europe and Asia were $1.5 billion.", "1.2*1000 + 300", "$1.2 billion@p|$300 million@p", "1.5", "$ bn"),
    ("Sales in Europe and Asia were $1.5 billion.", "1200000000 + 300000000", "1.2@p|300@p", "$1.5 billion", ""),
    ("Income per share was $15.10.", "6708/444346*1000", "6,708@i|444,346@i", "15.10", "$"),
    ("It is paid 20 days later.", "27-7", "September 7, 2023@p|September 27, 2023@p", "20", "days"),
    ("It is paid twenty days later.", 'days("September 7, 2023", "September 27, 2023")',
     "September 7, 2023@p|September 27, 2023@p", "20", "days"),
    ("It was down for 455 minutes.", "(24*60-(19*60+30))+(03*60+05)", "19:30@p|03:05@p", "455", "minutes"),
    ("Two leases end.", 'count("Nitra", “Tavorn”)', "Nitra@p|Tavorn@p", "2", ""),
    ("One lease ends.", 'count("Nitra")', "Nitra@p", "1", ""),
    ("The lease of Nitra ends first.", '"31 Oct 2025" < "1 Jan 2026" < "March 2026"',
     "31 Oct 2025@p|1 Jan 2026@p|March 2026@p", "true", ""),
    ("The last full date is 1 January 2026.", 'max("31 Oct 2025", "1 Jan 2026")',
     "31 Oct 2025@p|1 Jan 2026@p", "1 Jan 2026", ""),
    ("2022 had the most.", "480 > max(340, 263)", "480@f|340@f|263@f", "true", ""),
    ("More than 20 % of 213 is 74.", "74/213*100 > 20", "74@s|213@s", "true", ""),
    ("It fell from 82 % of 213, 38.5 %, to 74, 34.7 %.", "82/213*100; 74/213*100", "82@s|74@s|213@s", "38.5; 34.7", "%"),
    ("Half of 74 is 37.", "74*0.1*10/2", "74@s|369@s", "37", ""),
    ("The mean is 123.", "(213+74+82)/3", "213@s|74@s|82@s", "123", ""),
    ("The mean is 123.", "(213+74+82)/3", "Harbour Brand factory stores 213@s|74@s|82@s|369@s", "123", ""),
    ("The mean is 123.", "mean(213, 74, 82)", "213@s|74@s|82@s", "123.0", ""),
    ("29 % are due later.", "100% - 71%", "71%@p", "29", "%"),
    ("The total is 820.", "480+340", "480@f|340@f", "820", ""),
    ("Sixteen pairs.", "8*2", "Eight sensors@p|1,300@p", "16", ""),
    ("It fell by 77.0 %.", "(5.39E-05 - 1.24E-05)/5.39E-05*100", "5.39E-05@p|1.24E-05@p", "77.0", "%"),
    ("Zusammen 1527,5 Euro.", "1500 + 27.5", "1.500 Euro@p|27,5@p", "1527.5", "Euro"),
    ("It grew by 18.8 % a year.", "((480/340)^(1/2) - 1) * 100", "480@f|340@f", "18.8", "%"),
    ("Deliveries were 0.125 of it.", "1/8", "Eight@p", "0.12", ""),
    ("Deliveries were 0.13 of it.", "1/8", "Eight@p", "0.13", ""),
]  # fmt: skip


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case[1])
def test_a_right_working_is_proved(case: tuple[str, ...]):
    claim, *rest = case
    proof = prove(claim, working(*rest), TEXTS)
    assert proof.ok, proof.why


BAD = [
    ("It is 3.1%.", "6708/195929*100", "6,708@i|195,929@i", "3.1", "%", "it computes to 3.42, not 3.1"),
    ("It is about 3.5%.", "6708/195929*100", "6,708@i|195,929@i", "about 3.5", "%", "it computes to 3.42"),
    ("It is 3.1%.", "6708/195929*100", "6,708@i|195,929@i", "3.4", "%", "the claim does not state its result, 3.4"),
    ("Over 3 years it was 4.1%.", "6708/195929*100", "6,708@i|195,929@i", "3.4", "%", "the claim does not state"),
    ("It is 3.", "1304 - 1301", "1,304@p|1,301@p", "3", "", "“1,304” is not in what it cites"),
    ("It is 300.", "300", "300@p", "300", "", ""),  # whole in "$300 million"
    ("It is 929.", "929 - 100", "929@i", "829", "", "“929” is not in what it cites"),
    ("It is 92.", "195 - 100", "195@i", "95", "", "“195” is not in what it cites"),
    ("It is 5.", "5.39 - 1", "5.39@p", "4.39", "", "“5.39” is not in what it cites"),
    ("It is 82.", "82", "82@nowhere", "82", "", "“82” is not in what it cites"),
    ("It is more than 20 %.", "74/213*100 > 30", "74@s|213@s", "true", "", "“30” is not read from an operand"),
    ("It is 38.5 % and 35 %.", "82/213*100; 74/213*100", "82@s|74@s|213@s", "38.5; 35.9", "%", "it computes to 34.7"),
    ("It is 38.5 %.", "82/213*100; 74/213*100", "82@s|74@s|213@s", "38.5; 34.7", "%", "the claim does not state"),
    ("It is 37.", "74/2", "74@s", "37", "", "“2” is not read from an operand"),
    ("It is 7.", "0*74 + 7", "74@s|0@s", "7", "", "“0” is not in what it cites"),
    ("It is 1.3.", "1.3", "1,300@p", "1.3", "", "“1.3” is not read from an operand"),
    ("It is 480340.", "480340", "480@f|340@f", "480340", "", "“480340” is not read from an operand"),
    ("Two.", 'count("Nitra", "Nitra")', "Nitra@p", "2", "", "“Nitra” is counted twice"),
    ("Two.", 'count("Nitra", "Palewater")', "Nitra@p", "2", "", "“Palewater” is not among its operands"),
    ("Two.", 'count("The", "lease")', "The lease of Nitra@p", "2", "", "not an operand of its own"),
    ("Three.", 'count("Nitra", "Tavorn")', "Nitra@p|Tavorn@p", "3", "", "it computes to 2, not 3"),
    ("Two.", "count(480, 340)", "480@f|340@f", "2", "", "not in quotation marks"),
    ("It is less.", "480 < 340", "480@f|340@f", "true", "", "480 < 340 is not so"),
    ("It is less.", "480 < 340", "480@f|340@f", "false", "", "480 < 340 is not so"),
    ("It is more.", "480 > 340", "480@f|340@f", "480", "", "its comparison is true"),
    ("It ends first.", '"1 Jan 2026" < "31 Oct 2025"', "31 Oct 2025@p|1 Jan 2026@p", "true", "", "is not so"),
    ("It ends first.", '"31 Oct 2025" < 480', "31 Oct 2025@p|480@f", "true", "", "different kinds"),
    ("It ends later.", '"March 2026" > "3 March 2026"', "March 2026@p|3 March 2026@p", "true", "", "is not in what it"),
    ("It is 3 days.", 'days("03/04/2024", "1 Jan 2026")', "03/04/2024@p|1 Jan 2026@p", "3", "", "not one date"),
    ("It is 3 days.", 'days("March 2026", "1 Jan 2026")', "March 2026@p|1 Jan 2026@p", "3", "", "complete dates"),
    ("It is 3 days.", 'days("Nitra", "1 Jan 2026")', "Nitra@p|1 Jan 2026@p", "3", "", "neither a date nor a number"),
    ("It is 301.2.", "1.2 + 300", "$1.2 billion@p|$300 million@p", "301.2", "", "different scales"),
    ("It is 6708 more.", "6708 + 444346", "6,708@i|444,346@i", "451054", "", "different scales"),
    ("It is more.", "1.2 > 300", "$1.2 billion@p|$300 million@p", "true", "", "different scales"),
    ("It was $362.7 million.", "195929+166761", "195,929@i|166,761@i", "362.7", "million", "it computes to 362690"),
    ("It was $362,690.", "195929+166761", "195,929@i|166,761@i", "362,690", "$ million", "does not state"),
    ("It was $820.", "480+340", "480@f|340@f", "820", "$ million", "does not state"),
    ("It is 1.", "480/(340-340)", "480@f|340@f", "1", "", "divides by zero"),
    ("It is 1.", "change(340-340, 480)", "480@f|340@f", "1", "", "divides by zero"),
    ("It is 1.", "change(480)", "480@f", "1", "", "two values"),
    ("It is 7 hours 35.", "455", "455@p", "7 hours 35", "", "is not in what it cites"),
    ("It is 7 hours 35.", "480", "480@f", "7 hours 35", "", "is not one number"),
    ("It is many.", "480", "480@f", "many", "", "is not one number"),
    ("It is 480.", "", "480@f", "480", "", "cannot be read"),
    ("It is 480.", "480 480", "480@f", "480", "", "cannot be read"),
    ("It is 480.", "480 +", "480@f", "480", "", "cannot be read"),
    ("It is 480.", "(480 > 340) + 479", "480@f|340@f|479@f", "480", "", "is not in what it cites"),
    ("It is 480.", "(480 > 340) + 340", "480@f|340@f", "480", "", "not a number"),
    ("It is 480.", "480 if 480 else 340", "480@f|340@f", "480", "", "not arithmetic"),
    ("It is 480.", "480 != 340", "480@f|340@f", "true", "", "not arithmetic"),
    ("It is 480.", "0x1e0", "480@f", "480", "", "“0x1e0” is not read"),
    ("It is 480.", "480", "@f", "480", "", "is not in what it cites"),
    ("It is 480.", "sum()", "480@f", "480", "", "not arithmetic"),
    ("It is 480.", "sum(*[480])", "480@f", "480", "", "not arithmetic"),
    ("It is 480.", "max(480, key=340)", "480@f", "480", "", "not arithmetic"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: f"{case[1]} {case[-1]}")
def test_a_wrong_working_is_refused_with_a_reason(case: tuple[str, ...]):
    claim, *rest, why = case
    proof = prove(claim, working(*rest), TEXTS)
    assert proof.ok is not bool(why)
    assert why in proof.why


HOSTILE = [
    "__import__('os').system('true')", "().__class__.__bases__[0]", "lambda: 480", "[480 for _ in sum]", "480 .real",
    "10**10**10", "480**480", "480**-480", "10**100**100", "(-480)**0.5", "1e999*1e999", "1e9999", "9" * 900,
    "(" * 400 + "480" + ")" * 400, "-" * 900 + "480", "sum(" * 200 + "480" + ")" * 200, "+".join(["480"] * 240),
    "480" * 4_000_000, "f'{480}'", "'\\x41'", "“480", "\x00480", "480\n+\n340", "４８０", "480_0", "480j", "True", "None",
    "...", "print(480)", "eval('480')", "480; 340", "(x := 480)", "480 @ 340", "480 // 340", "480 and 340", "not 480",
    "~480", "480 in 340", "count('480'*10)", "days(480, 340)", "min()", "_0_", "_99_", "# 480", "480 # 340",
]  # fmt: skip


@pytest.mark.parametrize("expression", HOSTILE, ids=lambda text: text[:30])
def test_a_hostile_expression_is_refused(expression: str):
    proof = prove("It is 1.", working(expression, "480@f|340@f", "1"), TEXTS)
    assert not proof.ok
    assert proof.why
    assert len(proof.why) < 200
    assert basis(working(expression, "480@f|340@f", "1")) in Basis


def test_long_operands_results_and_texts_are_refused_or_read():
    long = "480 " * 2_500_000
    assert not prove("It is 1.", working("480", f"{long}@f", "480"), TEXTS).ok
    assert not prove("It is 480.", working("480", "480@f", long), TEXTS).ok
    assert not prove("It is 480.", working("480", "480@f", "480", long), TEXTS).ok
    assert not prove("It is 480.", working("480", "480@f|" * 500, "480"), TEXTS).ok
    assert not prove(long, working("481", "480@f", "480"), TEXTS).ok
    assert not prove("It is 9.", working("9", "9@x", "9"), {"x": "1" * 1_000_000}).ok


def test_the_steps_can_be_read():
    proof = prove("Deliveries rose by 41.2%.", working("(480-340)/340*100", "480@f|340@f", "41.2", "%"), TEXTS)
    assert proof == Proof(
        True,
        "",
        "41.18",
        (
            "(480 − 340) / 340 × 100 = 41.18",
            "480: “Deliveries 387 5 33 480” [f]",
            "340: “Deliveries 263 7 32 340” [f]",
        ),
    )


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ('count("a")', Basis.counted),
        ("480 > 340", Basis.comparison),
        ("480 = 340", Basis.comparison),
        ("480 + 340", Basis.calculation),
        ('count("a") + 1', Basis.calculation),
        ("((", Basis.calculation),
    ],
)
def test_the_basis_is_what_stands_at_the_top(expression: str, wanted: Basis):
    assert basis(working(expression, "", "1")) is wanted


FIGURES = st.decimals(min_value=1, max_value=10_000_000, places=2).map(lambda value: value.normalize())


@st.composite
def sums(draw: st.DrawFn) -> tuple[list[Decimal], str, Decimal]:
    """Figures, an expression over them, and its value."""
    operands = draw(st.lists(FIGURES, min_size=1, max_size=5, unique=True))
    text, value = f"{operands[0]:f}", operands[0]
    for each in operands[1:]:
        sign = draw(st.sampled_from("+-*/"))
        text = f"({text}) {sign} {each:f}"
        value = {"+": value + each, "-": value - each, "*": value * each, "/": value / each}[sign]
    return operands, text, value


@settings(max_examples=200)
@given(sums(), st.integers(0, 4), st.data())
def test_the_right_result_proves_and_a_changed_digit_does_not(
    drawn: tuple[list[Decimal], str, Decimal], decimals: int, data: st.DataObject
):
    operands, text, value = drawn
    assume(abs(value) < Decimal(10) ** 18)
    step = Decimal(1).scaleb(-decimals)
    result = f"{value.quantize(step, ROUND_HALF_UP):f}"
    cited = {"k": "\n".join(f"Row {name}: {each:,f} units" for name, each in zip("abcde", operands, strict=False))}
    given_ = tuple(Operand(f"{each:,f}", "k") for each in operands)
    proof = prove(f"It is {result} in all.", Working(text, given_, result), cited)
    assert proof.ok, proof.why
    place = data.draw(st.sampled_from([n for n, sign in enumerate(result) if sign.isdigit()]))
    digit = data.draw(st.sampled_from([sign for sign in "0123456789" if sign != result[place]]))
    changed = f"{result[:place]}{digit}{result[place + 1 :]}"
    # A tie may be rounded to either side.
    assume(Decimal(changed) != value.quantize(step, "ROUND_HALF_EVEN"))
    assert not prove(f"It is {changed} in all.", Working(text, given_, changed), cited).ok
    assert not prove(f"It is {changed} in all.", Working(text, given_, result), cited).ok


@settings(max_examples=300)
@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_no_working_raises(expression: str, words: str, result: str, text: str):
    given_ = Working(expression, (Operand(words, "k"),), result)
    assert isinstance(prove(text, given_, {"k": f"{text} {words}"}), Proof)


OUTAGE = {
    "c": "The outage began at 21:14 and ended at 22:48. The pump ran from 9:05 pm to 9:35:30 pm. It opened at 23:10.",
    "d": "The gate opened on 3 May 2025, 23:10 and closed on 4 May 2025, 01:40.",
}
AM = ("3 May 2025, 23:10@d", "4 May 2025, 01:40@d")


def elapsed(claim: str, expression: str, operands: Sequence[str], result: str, unit: str) -> Proof:
    parts = [Operand(words, key) for words, _, key in (each.rpartition("@") for each in operands)]
    return prove(claim, Working(expression, tuple(parts), result, unit), OUTAGE)


@pytest.mark.parametrize(
    ("claim", "expression", "operands", "result", "unit"),
    [
        ("From 21:14 to 22:48, 94 minutes.", 'minutes("21:14", "22:48")', ["21:14@c", "22:48@c"], "94", "minutes"),
        ("It took about 1.6 hours.", 'hours("21:14", "22:48")', ["21:14@c", "22:48@c"], "1.6", "hours"),
        ("It ran for 30.5 minutes.", 'minutes("9:05 pm", "9:35:30 pm")', ["9:05 pm@c", "9:35:30 pm@c"], "30.5", "min"),
        ("It was open for 150 minutes.", f'minutes("{AM[0][:-2]}", "{AM[1][:-2]}")', AM, "150", "minutes"),
        ("It was open for 2.5 hours.", f'hours("{AM[0][:-2]}", "{AM[1][:-2]}")', AM, "2.5", "hours"),
    ],
)
def test_time_between_two_clock_times_is_proved(
    claim: str, expression: str, operands: Sequence[str], result: str, unit: str
):
    assert elapsed(claim, expression, operands, result, unit).ok
    digit = next(each for each in reversed(result) if each.isdigit())
    wrong = str((int(digit) + 1) % 10).join(result.rsplit(digit, 1))
    assert not elapsed(claim.replace(result, wrong), expression, operands, wrong, unit).ok


@pytest.mark.parametrize(
    ("expression", "operands", "why"),
    [
        ('minutes("23:10", "21:14")', ["23:10@c", "21:14@c"], "past midnight both need their dates"),
        (f'minutes("{AM[0][:-2]}", "22:48")', [AM[0], "22:48@c"], "one of its clock times has a date"),
        (f'minutes("{AM[1][:-2]}", "{AM[0][:-2]}")', AM, "before the first"),
        ('minutes("21:14", "22:49")', ["21:14@c", "22:49@c"], "is not in what it cites"),
        ('minutes("21:14")', ["21:14@c"], "take two values"),
        ("minutes(21, 22)", ["21:14@c", "22:48@c"], "between two clock times"),
        ('"22:48"', ["22:48@c"], "not a result"),
        ('"22:48" - "21:14"', ["22:48@c", "21:14@c"], "not a number"),
    ],
)
def test_time_that_the_text_does_not_settle_is_not_proved(expression: str, operands: Sequence[str], why: str):
    found = elapsed("It took 94 minutes.", expression, operands, "94", "minutes")
    assert not found.ok and why in found.why


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ('minutes("21 April, 19:30", "22 April, 03:05")', "455"),
        ('days("28 December 2024", "3 January")', "6"),
        ('days("28 December", "3 January 2025")', "6"),
        ('days("21 April", "1 May")', "10"),
    ],
)
def test_a_date_without_a_year_has_that_of_the_other(expression: str, result: str):
    quoted = re.findall(r'"([^"]+)"', expression)
    working = Working(expression, tuple(Operand(each, "k") for each in quoted), result, "")
    assert prove(f"It took {result}.", working, {"k": f"From {quoted[0]} to {quoted[1]}."}).ok


@pytest.mark.parametrize("expression", ['days("27 February", "1 March")', '"21 April" < "1 May 2024"'])
def test_what_a_missing_year_would_decide_is_not_proven_and_not_refuted(expression: str):
    quoted = re.findall(r'"([^"]+)"', expression)
    working = Working(expression, tuple(Operand(each, "k") for each in quoted), "2", "days")
    proof = prove("It took 2 days.", working, {"k": f"From {quoted[0]} to {quoted[1]}."})
    assert not proof.ok and not proof.refuted and "year" in proof.why


PERIODS = [
    ("Vom {} bis zum {} geschlossen.", "17. Juni 2025", "3. Juli 2025"),
    ("Fermé du {} au {}.", "17 juin 2025", "3 juillet 2025"),
    ("Cerrado del {} al {}.", "17 de junio de 2025", "3 de julio de 2025"),
    ("Od {} do {} nieczynne.", "17 czerwca 2025 r.", "3 lipca 2025 r."),
    ("Van {} tot {} gesloten.", "17 juni 2025", "3 juli 2025"),
    ("从{}到{}关闭。", "2025年6月17日", "2025年7月3日"),
    ("مغلق من {} إلى {}.", "١٧ يونيو ٢٠٢٥", "٣ يوليو ٢٠٢٥"),
]


@pytest.mark.parametrize(("text", "first", "last"), PERIODS, ids=[first for _, first, _ in PERIODS])
def test_days_between_dates_of_other_languages_are_proved_or_refuted(text: str, first: str, last: str):
    shown = {"k": text.format(first, last)}
    counted = working(f'days("{first}", "{last}")', f"{first}@k|{last}@k", "16")
    assert prove("16", counted, shown).ok
    assert prove("15", replace(counted, result="15"), shown).refuted


SUMS = [
    ("Zusammen {} Mio. €.", "1.234,5 Mio. €", "765,5 Mio. €", "2.000", "2.001", "1234.5 + 765.5"),
    ("Zusammen {} Mio. €.", "1.234,5 Mio. €", "765,5 Mio. €", "2.000,0", "2.001,0", "1.234,5 + 765,5"),
    ("Zusammen {} Mrd. €.", "12,5 Mrd. €", "3 Mrd. €", "15,5", "14,5", "12.5 + 3"),
    ("Au total {} millions d'euros.", "1 234,5 millions d'euros", "0,5 million d'euros", "1 235", "1 236", "1234.5 + 0.5"),
    ("En total, {} mil millones.", "12,5 mil millones", "3 mil millones", "15,5", "17", "12.5 + 3"),
    ("Razem {} mln zł.", "12,5 mln zł", "3000 tys. zł", "15,5", "15", "12.5 + 3000/1000"),
    ("Samen {} miljard euro.", "12,5 miljard", "3 miljard", "15,5", "17", "12.5 + 3"),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "one", "two", "right", "wrong", "expression"), SUMS)
def test_sums_in_figures_of_other_languages_are_proved_or_refuted(
    claim: str, one: str, two: str, right: str, wrong: str, expression: str
):
    shown = {"k": f"A: {one}; B: {two}."}
    added = working(expression, f"{one}@k|{two}@k", right, claim.partition("{} ")[2])
    assert prove(claim.format(right), added, shown).ok
    assert prove(claim.format(wrong), replace(added, result=wrong), shown).refuted


@pytest.mark.parametrize("expression", ["1234 + 500", "1.234 + 500", '"1.234" + "500"'])
@pytest.mark.parametrize("result", ["1.734", "501.234"])
def test_a_figure_with_two_readings_is_proved_in_either(expression: str, result: str):
    own = working(expression, "1.234@k|500@k", result)
    proof = prove(f"Zusammen {result}.", own, {"k": "A 1.234, B 500."})
    assert proof.ok or (expression == "1234 + 500" and result == "501.234")
    assert prove("Zusammen 1.735.", replace(own, result="1.735"), {"k": "A 1.234, B 500."}).refuted


@pytest.mark.parametrize("percent", ["23,5 Prozent", "23,5 pour cent", "23,5 por ciento", "23,5 procent", "23,5 %"])
def test_a_share_is_stated_in_the_percent_of_its_language(percent: str):
    result, _, unit = percent.partition(" ")
    assert prove(f"{percent}.", working("47/200", "47@k|200@k", result, unit), {"k": "47 / 200"}).ok
