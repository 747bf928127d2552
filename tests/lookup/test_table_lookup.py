"""Questions that a table answers: by row and column, by condition, by count and by order; and those that it does not."""

from __future__ import annotations

import pytest
from ferries import document

from assay.tables.lookup import ROWS, TableAnswer, as_date, as_number, look_up


def ask(question: str) -> TableAnswer | None:
    return look_up(question, [document()])


def said(question: str) -> list[str]:
    found = ask(question)
    return [] if found is None else [found.value] if found.value else [cell.text for cell in found.cells]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the speed of the Petrel?", ["22 kn"]),
        ("When was the Skua built?", ["1987"]),
        ("When does the contract of the Tern end?", ["2028-01-31"]),
        ("Which port is the Tern in?", ["Ostrey"]),
        ("Which ferries are in Skelby?", ["Gannet", "Skua"]),
        ("List all ferries without a restaurant on board.", ["Petrel", "Skua"]),
        ("How many ferries have a restaurant on board?", ["2"]),
        ("How many ferries are in Skelby?", ["2"]),
        ("Which ferry's contract ends first?", ["Petrel", "2025-12-31"]),
        ("Which ferry has the largest capacity?", ["Tern", "210"]),
        ("Which ferries have a capacity of more than 100 cars?", ["Gannet", "Tern"]),
        ("Which ferries have a speed lower than 20?", ["Gannet", "Skua"]),
        ("Which ferries were built later than 2000?", ["Petrel", "Tern"]),
        ("How many Skelby ferries are there?", ["2"]),  # what limits them stands before them
        ("What is the total capacity in cars?", ["455"]),
        ("How large is the capacity of the Tern?", ["210"]),
        ("How many ferries have a contract that ends in 2026?", ["1"]),
        ("Which contracts end in December 2025?", ["Petrel"]),  # the row, not the date that is known
        ("Which ferries do not have a restaurant on board?", ["Petrel", "Skua"]),  # "no" does not say which
    ],
)
def test_a_table_answers_by_row_column_condition_and_order(question: str, expected: list[str]):
    assert said(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "What is the speed of the Albatross?",  # no such row
        "What is the fuel consumption of the Petrel?",  # no such column
        "How tall is the Petrel tower?",
        "What was the speed of the Petrel in 1950?",  # no such value
        "Which bank owns the ferries in Skelby?",
        "Who is the captain of the Tern?",
        "Who designed the ferry Tern?",  # the name of a row does not say who made it
        "How fast is the ferry Ostrey?",  # a port is no ferry
        "Where was the ferry Tern built?",  # a year is no place
        "How large is the capacity of the Tern in Skelby?",  # a port is no unit
    ],
)
def test_a_table_does_not_answer_what_it_does_not_account_for(question: str):
    assert ask(question) is None


def test_every_answer_has_its_rows():
    found = ask("Which ferries are in Skelby?")
    assert found is not None
    assert [row.label for row in found.rows] == ["Gannet", "Skua"]


@pytest.mark.parametrize(
    ("cell", "number"),
    [("37 m", 37), ("$12,500.00", 12500), ("(81)", -81), ("-4", -4), ("1 234", 1234), ("3,5", 3.5)],
)
def test_a_cell_is_read_as_a_number_with_its_sign(cell: str, number: float):
    assert as_number(cell) == number


@pytest.mark.parametrize("cell", ["NP-201", "A-12", "Zone 4 of the northern and the southern coast", "", "12/20-12/25"])
def test_a_code_or_a_text_is_no_number(cell: str):
    assert as_number(cell) is None


def test_dates_are_read_in_several_forms():
    assert (as_date("2025-12-31"), as_date("1987"), as_date("12/20/24")) == ("2025-12-31", "1987", "2024-12-20")
    assert as_date("890") is None


STAFF = b"""Port,2023,2024
Skelby,41,47
Ostrey,12,16
Marl Quay,9,11
"""


def test_a_number_that_a_table_gives_comes_before_the_number_of_its_rows():
    found = look_up("How many staff did Ostrey have in 2024?", [document(STAFF, "staff.csv", "Staff by port")])
    assert found is not None and [cell.text for cell in found.cells] == ["16"]


def test_the_one_row_that_a_question_names_is_not_counted():
    assert look_up("How many staff did Ostrey lease?", [document(STAFF, "staff.csv", "Staff by port")]) is None


HISTORY = b"""Year,Total assets,Employees,All employees by place
2021,300,40,40 in Skelby
2022,340,44,44 in Skelby
2023,360,47,30 in Skelby and 17 in Ostrey
"""


@pytest.mark.parametrize(
    "question",
    [
        "What are the total assets of the Petrel company?",  # a column of totals is not summed
        "How many employees does the Petrel company have?",  # years are not employees
        "How many places does the Petrel company have?",
    ],
)
def test_the_rows_of_a_history_are_neither_summed_nor_counted(question: str):
    assert look_up(question, [document(HISTORY, "history.csv", "Petrel company")]) is None


DEPOTS = b"""Depot,Place,Opened,Tools
Lower depot,Halden,2004,hammer
Upper depot,Ostrey,2011,saw
"""


def test_where_asks_for_the_column_of_places():
    found = look_up("Where was the Upper depot opened?", [document(DEPOTS, "depots.csv", "Depots")])
    assert found is not None and [cell.text for cell in found.cells] == ["Ostrey"]


STEPS = b"""Stage,Factor,Source
Survey implementation,method,reports
Survey implementation,quality,reports
Treatment,coverage,counts
"""


def test_rows_whose_labels_have_only_the_first_word_of_what_is_counted_are_not_counted():
    assert look_up("How many implementation units failed?", [document(STEPS, "units.csv", "Units and surveys")]) is None


BIRDS = b"""Year,Tame birds,Birds,Height of nest,Width of nest
2020,14,90,3 m,1 m
2021,15,95,4 m,2 m
"""


def test_the_column_whose_name_is_said_whole_comes_before_a_longer_name():
    found = look_up("How many birds were seen in 2021?", [document(BIRDS, "birds.csv", "Birds seen")])
    assert found is not None and [cell.text for cell in found.cells] == ["95"]


def test_two_columns_that_share_the_one_word_that_is_said_do_not_answer():
    assert look_up("How much bird seed is in the nest in 2021?", [document(BIRDS, "birds.csv", "Bird seed")]) is None


def test_two_tables_with_different_values_state_nothing():
    later = document(STAFF.replace(b"47", b"48"), "later.csv", "Staff by port")
    question = "How many staff did Skelby have in 2024?"
    once = document(STAFF, "staff.csv", "Staff by port")
    assert look_up(question, [once, later]) is None
    assert look_up(question, [once, document(STAFF, "copy.csv", "Staff by port")]) is not None


def test_the_years_of_a_table_are_its_own_and_not_those_of_its_file():
    source = document(STAFF, "report-2025.csv", "Staff by port 2025")
    assert look_up("How many staff did Skelby have in 2025?", [source]) is None


def test_the_noun_of_a_column_must_be_said():
    dams = document(
        b"Reservoir,Dam height,Feeds\nAshmere,22 m,Hollin Ford\nNether Tarn,14 m,Skelby\n", "dams.csv", "Dams"
    )
    assert look_up("How much water leaves the dam of Ashmere?", [dams]) is None
    assert look_up("How high is the dam at Skelby?", [dams]) is None  # what a dam feeds is not the dam
    found = look_up("How high is the dam of Ashmere?", [dams])
    assert found is not None and [cell.text for cell in found.cells] == ["22 m"]


def test_a_row_of_totals_is_neither_counted_nor_added():
    ports = document(STAFF + b"All,62,74\n", "staff.csv", "Staff by port")
    counted = look_up("How many ports are there?", [ports])
    assert counted is not None and counted.value == "3"


@pytest.mark.parametrize(
    ("table", "question", "expected"),
    [
        ("Ware,Preis (EUR),Land\nBananen,1.89,Peru\nBirnen,2.99,Polen\n", "Wie hoch ist der Preis der Bananen?", "1.89"),
        ("Hôtel,Ville,Chambres\nBellevue,Annecy,45\nDu Lac,Évian,32\n", "Combien de chambres a l’hôtel Bellevue ?", "45"),
        ("Río,Longitud,Desembocadura\nTajo,1007,Lisboa\nEbro,930,Tortosa\n", "¿Cuál es la longitud del Tajo?", "1007"),
    ],
)  # fmt: skip
def test_a_cell_is_looked_up_in_other_languages(table: str, question: str, expected: str):
    found = look_up(question, [document(table.encode(), "liste.csv", "")])
    assert found is not None and [cell.text for cell in found.cells] == [expected]


def test_a_table_with_too_many_rows_answers_nothing():
    long = b"Port,Staff\n" + b"".join(b"Port%d,%d\n" % (place, place) for place in range(ROWS + 1))
    assert look_up("What is the staff of Port7?", [document(long, "long.csv", "Ports")]) is None
