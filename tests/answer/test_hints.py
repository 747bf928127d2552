"""Statements that turn their source round are noticed; faithful ones are left alone."""

from __future__ import annotations

import pytest

from assay.answer.checking import hints
from assay.answer.checking.hints import find_hints

SEGMENTS = """(Dollars in millions) 2023 2022
Harbour cranes 1,228 1,104
Ferry services 897 912
Salvage 306 281
Total $ 2,431 $ 2,297"""
HALVES = """Three Months Ended June 30, Six Months Ended June 30,
($ in thousands) 2023 2022 2023 2022
Licence fees 4,310 3,980 8,655 7,702"""

CASH = """Cash flows — Years ended 31 May — Millions
2018 | 2017
Purchases of cranes\t(1,577)\t(1,373)
Net income of 4D Lines\t$\t5,777\t$\t5,921"""

# Kind → source, a statement that turns it round, and words of the hint that says so.
TURNED = {
    "denied": (
        "Orrel Mining denied that its Tarn pit had leaked arsenic.",
        "The Tarn pit of Orrel Mining leaked arsenic.",
        "“denied”",
    ),
    "alleged": (
        "The union alleged that Brenholt Foods withheld overtime pay in 2021.",
        "Brenholt Foods withheld overtime pay in 2021.",
        "“alleged”",
    ),
    "dismissed": (
        "The court dismissed the allegation that the firm diverted pension funds.",
        "The firm diverted pension funds.",
        "“dismissed”",
    ),
    "refuted": (
        "Later trials refuted the idea that velorin shortens a cold.",
        "Velorin shortens a cold.",
        "“refuted”",
    ),
    "rejected": (
        "The council rejected the proposal to close the Mill Street bridge.",
        "The council will close the Mill Street bridge.",
        "“rejected”",
    ),
    "myth": (
        "It is a myth that marsh herons mate for life.",
        "Marsh herons mate for life.",
        "“myth”",
    ),
    "rumour": (
        "There was a rumour that the Keld plant would be sold to Aster Works.",
        "The Keld plant was sold to Aster Works.",
        "“rumour”",
    ),
    "claims": (
        "The vendor claims that the Pico seal lasts twelve years.",
        "The Pico seal lasts twelve years.",
        "“claims that”",
    ),
    "believed": (
        "The founder believed that demand for kelp flour doubled in 2020.",
        "Demand for kelp flour doubled in 2020.",
        "“believed”",
    ),
    "expected": (
        "Sales of the Lorne division are expected to reach 40 million euros in 2026.",
        "Sales of the Lorne division will reach 40 million euros in 2026.",
        "“expected”",
    ),
    "conditional": (
        "The deposit is refunded if the tenant gives notice before May.",
        "The deposit is refunded to the tenant.",
        "“if”",
    ),
    "unless": (
        "The valve closes at midnight unless the operator holds it open.",
        "The valve closes at midnight.",
        "“unless”",
    ),
    "only after": (
        "Visitors may enter the vault only after a guard has signed the sheet.",
        "Visitors may enter the vault.",
        "“only after”",
    ),
    "until": (
        "The pump must not be restarted until the seal has been checked.",
        "The pump must not be restarted.",
        "“until”",
    ),
    "used to": (
        "The ferry used to call at Sanna on Sundays.",
        "The ferry calls at Sanna on Sundays.",
        "“used to”",
    ),
    "superseded": (
        "The limit of 60 bar was superseded by the notice of March.",
        "The limit is 60 bar.",
        "“superseded”",
    ),
    "no longer": (
        "The museum no longer lends its prints to schools.",
        "The museum lends its prints to schools.",
        "“no longer”",
    ),
    "contra-": (
        "Tavrolin is contraindicated in patients with asthma.",
        "Tavrolin is indicated in patients with asthma.",
        "“contraindicated”",
    ),
    "mis-": (
        "The auditors found that the stock had been misstated by the branch.",
        "The auditors found that the stock had been stated by the branch.",
        "“misstated”",
    ),
    "anti-": (
        "The pamphlet was handed out by anti-nuclear groups in Rask.",
        "The pamphlet was handed out by nuclear groups in Rask.",
        "“antinuclear”",
    ),
    "un-": (
        "The quarterly figures of Dunmore Rail are unaudited.",
        "The quarterly figures of Dunmore Rail are audited.",
        "“unaudited”",
    ),
    "dis-": (
        "The panel disapproved the second budget of the port.",
        "The panel approved the second budget of the port.",
        "“disapproved”",
    ),
    "non-": (
        "Losses from the fire at Elver are non-deductible.",
        "Losses from the fire at Elver are deductible.",
        "“nondeductible”",
    ),
    "negation": (
        "The Oster pump is not certified for drinking water.",
        "The Oster pump is certified for drinking water.",
        "A negation",
    ),
    "negation added": (
        "The Oster pump is certified for drinking water.",
        "The Oster pump is not certified for drinking water.",
        "A negation",
    ),
    "direction": (
        "Turnover of the ferry line fell by 4% in the spring.",
        "Turnover of the ferry line rose by 4% in the spring.",
        "“fell”",
    ),
    "direction in a table": (
        SEGMENTS,
        "Ferry services grew in 2023.",
        "goes from 912 in 2022 to 897 in 2023",
    ),
    "scope: some": (
        "Some pumps of the Oster series need a second seal.",
        "All pumps of the Oster series need a second seal.",
        "“some”",
    ),
    "scope: all added": (
        "Pumps of the Oster series need a second seal.",
        "All pumps of the Oster series need a second seal.",
        "“all”",
    ),
    "scope: most": (
        "Most residents of Keld were moved in March.",
        "The residents of Keld were moved in March.",
        "“most”",
    ),
    "scope: only": (
        "Grants are open to schools and libraries.",
        "Grants are open only to schools.",
        "“only”",
    ),
    "scope: only dropped": (
        "Refunds are paid only to members of the club.",
        "Refunds are paid to members of the club.",
        "“only”",
    ),
    "scope: up to": (
        "The works will hire up to 35 fitters this year.",
        "The works will hire 35 fitters this year.",
        "“up to”",
    ),
    "scope: at least": (
        "Repairs to the lock cost at least 80,000 euros.",
        "Repairs to the lock cost 80,000 euros.",
        "“at least”",
    ),
    "roles": (
        "Brightwater acquired Dalen Shipping in 2019.",
        "Dalen Shipping acquired Brightwater in 2019.",
        "“acquired”",
    ),
    "roles, passive": (
        "Brightwater acquired Dalen Shipping in 2019.",
        "Brightwater was acquired by Dalen Shipping in 2019.",
        "“acquired”",
    ),
    "roles without names": (
        "The landlord pays the tenant for the repair.",
        "The tenant pays the landlord for the repair.",
        "“pays”",
    ),
    "plan as done": (
        "Corvane plans to open two quarries in Norland.",
        "Corvane opened two quarries in Norland.",
        "“plans”",
    ),
    "proposed": (
        "A second runway was proposed for the Halt airfield.",
        "The Halt airfield has a second runway.",
        "“proposed”",
    ),
    "could": (
        "The fault could affect every gate of the canal.",
        "The fault affects every gate of the canal.",
        "“could”",
    ),
    "wrong row": (
        SEGMENTS,
        "Ferry services earned $306 million in 2023.",
        "in the row “Salvage”",
    ),
    "wrong column": (
        SEGMENTS,
        "Ferry services earned $912 million in 2023.",
        "in the column “2022”",
    ),
    "wrong span": (
        HALVES,
        "Licence fees were $8,655 thousand in the three months ended June 30, 2023.",
        "in the column “six months”",
    ),
    "wrong scale": (
        HALVES,
        "Licence fees were $8,655 million in the six months ended June 30, 2023.",
        "“$8,655 million” is not in the passages",
    ),
    "wrong unit": (
        "The ballast of the Sanna weighs 340 kg.",
        "The ballast of the Sanna weighs 340 tonnes.",
        "in kg",
    ),
    "number": (
        "The tower of Rask has 14 bells.",
        "The tower of Rask has 17 bells.",
        "“17” is not in the passages",
    ),
    "number of something else": (
        "The tower has 14 bells. The sexton rings for weddings. Postcards sell at 250 pence.",
        "The tower was visited by 250 pilgrims who heard the sexton ring the bells for a wedding.",
        "“250” stands in a sentence about something else",
    ),
    "date": (
        "The lock was opened on 4 May 1931.",
        "The lock was opened on 4 June 1931.",
        "“4 June 1931” is not in the passages",
    ),
    "unit of time": (
        "The records are kept for 90 days. Staff are trained for three months.",
        "The records are kept for 90 months.",
        "“90 months” is not in the passages",
    ),
    "unit of time in a header": (
        "Kept for (days)\nInvoices | 90 | yes\nLetters | 30 | no",
        "Invoices are kept for 90 months.",
        "in day",
    ),
    "lost minus sign": (
        "The balance of the fund was -340 euros in May.",
        "The balance of the fund was 340 euros in May.",
        "“-340” with a minus sign",
    ),
    "lost minus sign in a table": (
        "(Dollars in millions) 2023 2022\nHarbour cranes 1,228 1,104\nFerry services -97 112",
        "Ferry services had a result of $97 million in 2023.",
        "“-97” with a minus sign",
    ),
    "minus sign added": (
        "The sea at Sanna was 12 °C warm in May.",
        "The sea at Sanna was −12 °C warm in May.",
        "“12” without a minus sign",
    ),
    "year of another date": (
        "The lock was opened on 17 May 2024. The gates were ordered in 2023.",
        "The lock was opened on 17 May 2023.",
        "“17 May 2023” is not in the passages",
    ),
    "attribution after the statement": (
        "The wall of the dam is sound, says the keeper.",
        "The wall of the dam is sound.",
        "“says”",
    ),
    "attribution after a quotation": (
        "“The wall of the dam is sound,” the keeper of Rask said in May.",
        "The wall of the dam is sound.",
        "“said”",
    ),
    "opinion": (
        "The reviewer considers the yard badly run.",
        "The yard is badly run.",
        "“considers”",
    ),
    "view": (
        "In her view the yard is badly run.",
        "The yard is badly run.",
        "“in her view”",
    ),
    "name": (
        "The lock was built by Ada Thorne.",
        "The lock was built by Enid Marsh.",
        "“Enid Marsh” is not in the passages",
    ),
}


@pytest.mark.parametrize("kind", TURNED)
def test_a_statement_that_turns_its_source_round_gets_a_hint(kind: str) -> None:
    source, claim, words = TURNED[kind]
    found = find_hints(claim, [source])
    assert any(words in hint for hint in found), found


# Rules of the module; the first two find prefixes together.
RULES = (("_polarity", "_prefixes"), ("_facts",), ("_elsewhere",), ("_qualified",), ("_scope",), ("_roles",))


@pytest.mark.parametrize("kind", TURNED)
def test_each_hint_comes_from_one_rule(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, claim, words = TURNED[kind]
    needed: list[tuple[str, ...]] = []
    for rule in RULES:
        with monkeypatch.context() as patch:
            for name in rule:
                patch.setattr(hints, name, lambda *_: ())
            if not any(words in hint for hint in find_hints(claim, [source])):
                needed.append(rule)
    assert len(needed) == 1


@pytest.mark.parametrize("kind", TURNED)
def test_the_source_itself_gets_none_of_these_hints(kind: str) -> None:
    source, _, _ = TURNED[kind]
    if "\n" not in source and "about something else" not in TURNED[kind][2]:
        assert find_hints(source, [source]) == ()


REPORT = "The Company, together with its subsidiaries, runs ferries. We own three yards. The Board met in May."

NOTED = """2023 2022
Inventories (Note 4) 973 1,044
Receivables (Note 5) 310 281"""

# Faithful statements: source, statement, what stands above the source.
FAITHFUL = [
    ("The union alleged that Brenholt Foods withheld pay.", "According to the union, Brenholt Foods withheld pay.", ""),
    ("The court dismissed the claim against Orrel.", "The claim against Orrel was thrown out by the court.", ""),
    ("The Tarn pit is not certified.", "The Tarn pit has no certificate.", ""),
    ("Boats are not allowed on the lake.", "No, boats are forbidden on the lake.", ""),
    ("The pump is out of service.", "The pump is not in service.", ""),
    ("Brightwater acquired Dalen Shipping in 2019.", "Dalen Shipping was acquired by Brightwater in 2019.", ""),
    ("Corvane plans to open two quarries.", "Corvane means to open two quarries.", ""),
    ("Sales are expected to double.", "The firm forecasts that sales will double.", ""),
    ("The valve may leak if it is cold.", "In the cold the valve might leak, provided that it is cold enough.", ""),
    ("Sales rose by 4%.", "Sales went up by 4%.", ""),
    ("Sales rose by 4%.", "Yes, sales climbed by 4 percent.", ""),
    ("The tower has 14 bells.", "Bells: the tower has fourteen.", ""),
    ("In the year ended June 30, 2022 the yard built 31 boats.", "In FY2022 the yard built 31 boats.", ""),
    ("Fiscal 2022 was a good year for the yard.", "FY22 was a good year for the yard.", ""),
    ("In the second quarter the yard built 31 boats.", "The yard built 31 boats in Q2.", ""),
    ("The boats cost 1,228,400 euros.", "The boats cost about 1.2 million euros.", ""),
    (REPORT, "Sanna Lines owns three yards.", ""),
    (REPORT, "The Company owns three yards.", ""),
    ("The Monitoring Trust owns the weir.", "The Sarrow Monitoring Trust owns the weir.", ""),
    ("Trade with Asia, Europe and Africa rose.", "Trade with AEA rose.", ""),
    (SEGMENTS, "Harbour cranes brought in $1.2 billion in 2023.", ""),
    (SEGMENTS, "Harbour cranes brought in $1,228 million in 2023.", ""),
    (SEGMENTS, "Salvage brought in $281 million in 2022.", ""),
    (SEGMENTS, "Harbour cranes grew in 2023.", ""),
    (HALVES, "Licence fees were $8,655 thousand in the six months ended June 30, 2023.", ""),
    (HALVES, "Licence fees were about $4.3 million in the three months ended June 30, 2023.", ""),
    ("AS OF MAY 31,\n2023 2022\nInventories 973 1,044", "On May 31, 2022, inventories were 1,044.", ""),
    ("Net result (553) (612)", "The net result was a loss of 553.", ""),
    ("The yard built 31 boats.", "Sanna Lines built 31 boats.", "Sanna Lines plc, annual report 2022"),
    ("Some 2,300 readings were waiting.", "2,300 readings were waiting.", ""),
    ("The lock was opened in May.", "In May the lock was opened.", ""),
    ("It is the most important port.", "It is an important port.", ""),
    ("The restructuring plan was completed in 2019.", "The restructuring was completed in 2019.", ""),
    ("Costs of the pension plans rose by 4%.", "Pension costs rose by 4%.", ""),
    (NOTED, "Inventories were 973 in 2023.", ""),
    (NOTED, "Inventories, set out in Note 4, were 973 in 2023.", ""),
    ("Revenue was 40 million.", "Revenue was 40 million (Note 4).", ""),
    ("The lease of the yard runs until 4 May 2030.", "The lease of the yard runs to 4 May 2030.", ""),
    (
        "The pump must not be restarted until the seal was checked.",
        "The pump stays off until the seal was checked.",
        "",
    ),
    ("The result was -340 euros.", "The result was a loss of 340 euros.", ""),
    ("Margin changed by -3.4%.", "Margin fell by 3.4%.", ""),
    ("From 2019–2022 the yard built 31 boats.", "From 2019 to 2022 the yard built 31 boats.", ""),
    ("Years ended June 30, 2022 2021\nInventories 973 1,044", "On June 30, 2021, inventories were 1,044.", ""),
    ("The Initial Public Offering ended on 16 December 2024.", "The IPO of December 16, 2024 is over.", ""),
    ("The wall is sound, says the keeper.", "According to the keeper, the wall is sound.", ""),
    ("The wall is sound, says the keeper.", "The keeper says that the wall is sound.", ""),
    (CASH, "Purchases of cranes were USD 1,577 million in 2018.", ""),
    (CASH, "Net income of 4D Lines was $5,777 million in 2018.", ""),
    ("The alarm appeared on the screen at 03:50.", "The alarm was on the screen at 03:50.", ""),
]


@pytest.mark.parametrize(("source", "claim", "above"), FAITHFUL)
def test_a_faithful_statement_gets_no_hint(source: str, claim: str, above: str) -> None:
    assert find_hints(claim, [source], [above] if above else []) == ()


def test_a_hint_is_one_short_sentence() -> None:
    for source, claim, _ in TURNED.values():
        for hint in find_hints(claim, [source]):
            assert len(hint) < 160
            assert hint.endswith(".")
            assert "\n" not in hint


def test_a_claim_full_of_figures_gets_a_few_hints_soon():
    claim = " ".join(f"Row {n} has {n * 7},300 and {n}.5 percent." for n in range(100, 2000))
    assert 0 < len(find_hints(claim, [SEGMENTS * 5])) <= 8


def test_a_claim_without_passages_or_words_gets_no_error() -> None:
    assert find_hints("", []) == ()
    assert find_hints("", ["Text."]) == ()
    assert find_hints("The tower has bells.", []) == ()
    assert find_hints("The tower has bells.", ["", "\n"]) == ()
