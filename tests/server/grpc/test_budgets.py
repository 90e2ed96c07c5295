"""Budgets as operators set them: through the calls, and `budget credit`."""

from typing import Any

import grpc
import pytest
import typer

from allocator.cli.remote.budgets import budget_credit
from allocator.cli.remote.connection import call
from allocator.core import SetQuota
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2 as spb
from allocator.v1.types_pb2 import Quantities
from allocator.wire.codec.proto_types import read_quantities
from tests.rule_changes import listed, rule_change
from tests.server.grpc.test_admin import CLUSTER, refusal
from tests.server.in_process import tell


def budget(role: str = "eng", per: str = "month", *, hard: bool = False, **hours: float) -> Any:
    amounts = {name: round(1000 * each) for name, each in hours.items()}
    quantities = Quantities(name=amounts.keys(), amount=amounts.values())
    return rule_change(budget=spb.Budget(role=role, budget=quantities, per=per, hard=hard))


class Asking:
    """A `Sidecar` on a channel in this process."""

    def __init__(self, stub) -> None:
        self.stub = stub

    def ask(self, rpc: str, **fields: object) -> Any:
        return call(self.stub, rpc, 10.0, **fields)


def test_a_budget_is_listed_with_what_is_left(loop, stub):
    tell(loop, *CLUSTER)
    stub.ChangeRule(budget(cpus=3, mem=9))
    found = stub.ListRules(pb.ListRulesRequest(kind="budget"))
    (rule,), (use,) = listed(found), found.uses
    assert (rule.role, use.role, use.per, use.over) == ("eng", "eng", "month", False)
    assert read_quantities(use.left) == {"cpus": 3000, "mem": 9000}
    assert stub.GetStatus(pb.GetStatusRequest()).budgets[0] == use
    removed = rule_change(budget=spb.Budget(role="eng"), remove=True)
    assert not stub.ChangeRule(removed).rules
    assert not stub.ListRules(pb.ListRulesRequest(kind="budget")).uses


def test_a_resource_that_is_none_is_refused_with_what_was_meant(loop, stub):
    tell(loop, *CLUSTER)
    text = refusal(stub.ChangeRule, budget(cpu=3))
    assert "no agent has any 'cpu', it would have no effect; did you mean 'cpus'?" in text
    forced = budget(cpu=3)
    forced.force = True
    assert stub.ChangeRule(forced).rules


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (budget(per="year", cpus=3), "per = 'year' is not possible; give month, week or day"),
        (budget(cpus=0), "budget: 'cpus': 0h is not possible; give more than 0h"),
        (budget(), "budget: is empty; name amounts, or take the budget back"),
    ],
)
def test_a_budget_that_is_none_names_the_field_and_the_fix(loop, stub, request_, text):
    tell(loop, *CLUSTER)
    assert text in refusal(stub.ChangeRule, request_)


def test_a_hard_budget_warns_of_a_guarantee(loop, stub):
    tell(loop, *CLUSTER, SetQuota("eng", {"cpus": 2000}, {}))
    (warning,) = stub.ChangeRule(budget(cpus=3, hard=True)).change.warnings
    text = "over it, 'eng' is not offered its guarantee either, which stays free: cpus:2"
    assert warning == text
    assert not stub.ChangeRule(budget(cpus=3)).change.warnings


def test_a_dry_run_says_what_would_be(loop, stub):
    tell(loop, *CLUSTER)
    wanted = budget(cpus=3, hard=True)
    wanted.dry_run = True
    change = stub.ChangeRule(wanted).change
    assert (change.would_be, change.is_now) == ("cpus:3h, per month, hard", "")
    assert not stub.ListRules(pb.ListRulesRequest(kind="budget")).rules


def test_credits_of_one_period_add_up(loop, stub):
    tell(loop, *CLUSTER)
    stub.ChangeRule(budget(cpus=3, mem=9))
    for words in ("cpus:1h", "cpus:0.5h;mem:2h"):
        budget_credit(Asking(stub), "eng", words)  # type: ignore[arg-type]
    found = stub.ListRules(pb.ListRulesRequest(kind="budget"))
    (rule,), (use,) = listed(found), found.uses
    assert (rule.credit, rule.credit_from) == ("cpus:1.5h;mem:2h", "1970-01-01")
    assert read_quantities(use.budget) == {"cpus": 4500, "mem": 11_000}


def test_a_credit_is_refused_if_the_budget_was_changed_meanwhile(loop, stub):
    """Both read the budget before either is given, so the second would replace the first."""
    tell(loop, *CLUSTER)
    stub.ChangeRule(budget(cpus=3))
    first, second = Asking(stub), Asking(stub)
    ask = second.ask

    def after_the_first(rpc: str, **fields: object) -> Any:
        if rpc == "ChangeRule":
            budget_credit(first, "eng", "cpus:1h")  # type: ignore[arg-type]
        return ask(rpc, **fields)

    second.ask = after_the_first  # type: ignore[method-assign]
    with pytest.raises(grpc.RpcError) as error:
        budget_credit(second, "eng", "cpus:2h")  # type: ignore[arg-type]
    assert "changed meanwhile; try again" in str(error.value)
    (rule,) = listed(stub.ListRules(pb.ListRulesRequest(kind="budget")))
    assert rule.credit == "cpus:1h"
    budget_credit(first, "eng", "cpus:2h")  # type: ignore[arg-type]
    (rule,) = listed(stub.ListRules(pb.ListRulesRequest(kind="budget")))
    assert rule.credit == "cpus:3h"


@pytest.mark.parametrize(
    ("role", "words", "text"),
    [
        ("ops", "cpus:1h", "role = 'ops' has no budget; set one: budget set"),
        ("eng", "cpus:1", "'cpus:1' is not a number of hours; add an h, as in 'gpus:500h'"),
        ("eng", "", "names no resource"),
        ("eng", "cpus:-1h", "cpus: '-1' is out of range"),
    ],
)
def test_a_credit_that_is_none_is_refused(loop, stub, role, words, text):
    tell(loop, *CLUSTER)
    stub.ChangeRule(budget(cpus=3))
    with pytest.raises(typer.BadParameter) as found:
        budget_credit(Asking(stub), role, words)  # type: ignore[arg-type]
    assert text in str(found.value)
