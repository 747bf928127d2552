"""Statements that the driver runs are part of the transaction, and fail as all others do."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Text, bindparam, insert, select

from assay.core.codec import dumps
from assay.core.errors import StoreError
from assay.store.database import Store, open_store
from assay.store.dialect import Prepared, one_of
from assay.store.schema import facts

PUT = Prepared(insert(facts))
NAMED = Prepared(
    select(facts.c.name).where(one_of(facts.c.name, bindparam("names", type_=Text))).order_by(facts.c.name)
)
FIRST = Prepared(select(facts.c.name).where(facts.c.value == bindparam("of")).order_by(facts.c.name).limit(1))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "state.db", create=True)


def named(store: Store, *names: str) -> list[str]:
    with store.read() as connection:
        return [name for (name,) in NAMED.all(connection, names=dumps(names))]


def test_a_list_has_any_number_of_values(store: Store):
    with store.write() as connection:
        PUT.run_many(connection, [{"name": name, "value": "v"} for name in ("one", "two", "it's")])
    assert named(store) == []
    assert named(store, "two", "none") == ["two"]
    assert named(store, "two", "it's", "one") == ["it's", "one", "two"]


def test_values_of_the_statement_itself_are_given_too(store: Store):
    with store.write() as connection:
        PUT.run_many(connection, [{"name": "a", "value": "v"}, {"name": "b", "value": "v"}])
    with store.read() as connection:
        assert FIRST.first(connection, of="v") == ("a",)
        assert FIRST.first(connection, of="w") is None


def test_what_is_written_goes_with_its_transaction(store: Store):
    with pytest.raises(ZeroDivisionError), store.write() as connection:
        PUT.run(connection, name="gone", value="")
        assert named(store, "gone") == []  # another connection does not see it
        _ = 1 / 0
    assert named(store, "gone") == []


def test_a_key_that_is_taken_is_an_error_of_the_store(store: Store):
    with store.write() as connection:
        PUT.run(connection, name="one", value="")
    with pytest.raises(StoreError, match="at the same time"), store.write() as connection:
        PUT.run(connection, name="one", value="")


def test_a_read_of_several_statements_sees_one_moment(store: Store):
    with store.read() as connection:
        assert NAMED.all(connection, names=dumps(["late"])) == []
        with store.write() as other:
            PUT.run(other, name="late", value="")
        assert NAMED.all(connection, names=dumps(["late"])) == []
    assert named(store, "late") == ["late"]


def test_a_list_of_keys_is_looked_up_in_the_index(store: Store):
    with store.read() as connection:
        sql, _, _ = NAMED._for(connection)
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", ("[]",))]
    assert plan[0].startswith("SEARCH facts USING"), plan
