"""Formatting of responses by commands: plain data, and tables."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.cli.remote.output import by_kind, plain
from allocator.cli.render import setting_tables, share_tables, tables, terminal
from allocator.cli.render.terminal import print_table
from allocator.cli.tree import Exit, fail
from allocator.plain import json_text
from allocator.rule_kinds import CONSTRAINT, DEMAND
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2 as spb
from allocator.v1.types_pb2 import Quantities


def test_amounts_are_numbers_in_the_resources_own_unit():
    share = pb.Share(held=Quantities(name=["cpus", "mem"], amount=[1500, 2_048_000]))
    assert plain(share)["held"] == {"cpus": 1.5, "mem": 2048}
    use = pb.ResourceUse(name="cpus", total=9000, held=4500, offered=250)
    assert plain(use) == {"name": "cpus", "total": 9, "held": 4.5, "offered": 0.25}


def test_a_command_ignores_the_options_of_an_earlier_one_in_the_same_process(tmp_path):
    nowhere = ("--target", f"unix:{tmp_path}/none")
    for words in (("agents", "--output", "wide"), ("usage", "show", "--json")):
        done = CliRunner().invoke(app, [*words, *nowhere])
        assert done.exit_code == Exit.UNREACHABLE, done.output


def test_every_field_is_there_and_json_can_say_it():
    status = plain(pb.GetStatusResponse(cycle_p50_ms=float("nan"), cycles=2**60))
    assert status.keys() == {field.name for field in pb.GetStatusResponse.DESCRIPTOR.fields}
    assert status["cycle_p50_ms"] is None
    assert status["policy"]["parameters"] == {}
    assert json.loads(json.dumps(status, allow_nan=False))["cycles"] == 2**60


def unknown_word(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def test_numbers_that_are_not_finite_are_json_all_the_same():
    inf, nan = float("inf"), float("nan")
    answer = plain(pb.GetSharesResponse(clients=[share(share=-inf)], jain_index=nan, envy_max=inf))
    answer["clients"][0]["score"] = inf
    read = json.loads(json_text(answer), parse_constant=unknown_word)
    assert (read["jain_index"], read["envy_max"]) == (None, "Infinity")
    assert (read["clients"][0]["share"], read["clients"][0]["score"]) == ("-Infinity", "Infinity")


def test_commands_write_json_in_one_place():
    root = Path(share_tables.__file__).parent
    wrong = [path.name for path in sorted(root.rglob("*.py")) if "json.dump" in path.read_text()]
    assert not wrong


def test_names_of_tenants_do_not_control_the_terminal(capsys):
    print_table(["[bold]\x1b]0;x\x07"], [["[red]a\x1b[2J\u202eb"]], "")
    with pytest.raises(SystemExit):
        fail(Exit.REFUSED, "framework = 'x\x9b2J\x1b[2J'\n: is unknown")
    done = capsys.readouterr()
    assert "[bold]" in done.out
    assert "[red]a" in done.out
    assert (done.out + done.err).replace("\n", "").isprintable()
    assert done.err.count("\n") == 1


def share(**fields) -> pb.Share:
    return pb.Share(score=float("nan"), active=True, weight=1, **fields)


def test_shares_are_a_table(capsys):
    clients = [
        share(
            framework_name="spark",
            role="eng",
            share=0.5,
            demand_source="label",
            offered_share=0.25,
            offer_age_s=61.7,
            waited_cycles=7,
        ),
        share(framework_id="id-2", role="ops", suppressed=True, share=0.25),
    ]
    answer = pb.GetSharesResponse(
        clients=clients, roles=[share(role="eng")], jain_index=0.75, envy_max=float("nan")
    )
    share_tables.shares(share_tables.arranged(plain(answer)), wide=True)
    lines = capsys.readouterr().out.splitlines()
    (spark,) = [line for line in lines if line.startswith("spark")]
    numbers = ["1", "0.5000", "0.0000", "-", "-", "0.2500", "-", "-", "label", "0", "0"]
    assert spark.split() == ["spark", "eng", *numbers, "62", "s", "7", "active"]
    (nameless,) = [line for line in lines if line.startswith("id-2")]
    assert nameless.split()[-4:] == ["0", "-", "0", "suppressed"]
    assert "Jain index 0.750, largest envy: too much to compare" in lines


@pytest.mark.parametrize(
    ("envy", "told"), [(0, "0 tasks"), (1, "1 task"), (2.5, "2.5 tasks"), (4321, "4,321 tasks")]
)
def test_envy_is_counted_in_tasks(capsys, envy, told):
    answer = pb.GetSharesResponse(jain_index=1, envy_max=envy)
    share_tables.shares(share_tables.arranged(plain(answer)))
    assert f"Jain index 1.000, largest envy: {told}\n" in capsys.readouterr().out


def many() -> dict:
    """Two that wait, two that do not, in the order of the answer: the largest share first."""
    held = Quantities(name=["cpus", "mem"], amount=[4000, 8_192_000])
    demand = Quantities(name=["cpus", "mem"], amount=[2000, 4_096_000])
    clients = [
        share(framework_name="rich", role="eng", share=0.5, weighted_share=0.5, held=held),
        share(framework_name="fed", role="eng/ads", share=0.2, weighted_share=0.2, held=held),
        share(framework_name="thin", role="ops", share=0.1, weighted_share=0.1, waited_cycles=7),
        share(framework_name="starved-framework", role="ops", waited_cycles=7, demand=demand),
        share(framework_name="new", role="ops", waited_cycles=1),
    ]
    for each in clients[:2]:
        each.dominant_resource = "mem"
    roles = [share(role=role) for role in ("eng", "eng/ads", "ops")]
    answer = pb.GetSharesResponse(clients=clients, roles=roles, jain_index=0.75, envy_max=1.5)
    return plain(answer)


def names(data: dict, **view) -> list[str]:
    return [each["framework_name"] for each in share_tables.arranged(data, **view)["clients"]]


def test_starved_frameworks_are_listed_first():
    assert names(many()) == ["starved-framework", "thin", "new", "rich", "fed"]
    assert names(many(), sort="share") == ["rich", "fed", "thin", "starved-framework", "new"]
    assert names(many(), sort="name") == ["fed", "new", "rich", "starved-framework", "thin"]
    assert names(many(), waiting=True, limit=2) == ["starved-framework", "thin"]
    limited = share_tables.arranged(many(), limit=2)
    assert (len(limited["roles"]), limited["not_shown"]) == (2, 3)


def test_omitted_rows_are_counted(capsys):
    share_tables.shares(share_tables.arranged(many(), limit=2))
    # Two of three roles are shown. The frameworks have no ids here, so they count as one.
    assert "not shown: 1 role and 1 framework in 3 roles" in capsys.readouterr().out
    share_tables.shares(share_tables.arranged(many()))
    assert "not shown" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("view", "said"),
    [
        ({"newcomer": "eng/ads"}, "a new framework would get 0.2500"),
        (
            {"newcomer": "opps", "limit": 1},
            (
                "a new framework in opps would get 0.2500; no framework is in that role yet;"
                " did you mean 'ops'?"
            ),
        ),
        ({"newcomer": "opps", "role": "eng"}, "a new framework would get 0.2500"),
    ],
)
def test_a_newcomer_in_a_role_of_its_own_is_said(capsys, view, said):
    data = {**many(), "newcomer_share": 0.25}
    share_tables.shares(share_tables.arranged(data, **view), newcomer=view["newcomer"])
    assert said in capsys.readouterr().out.splitlines()


def test_shares_fit_eighty_characters(capsys):
    share_tables.shares(share_tables.arranged(many()))
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    (starved,) = [line for line in text.splitlines() if line.startswith("starved")]
    assert starved.split() == [
        "starved-framework",
        "ops",
        "0.000",
        "-",
        "cpus:2;mem:4096",
        "7",
        "active",
    ]
    assert "mem:8192" in text


def test_a_status_is_a_list(capsys):
    status = pb.GetStatusResponse(
        in_session=True, master_id="m", mesos_version="1.11.0", cycle_p50_ms=1, cycle_p99_ms=2.25
    )
    status.policy.name = "choosy"
    status.policy.parameters["unit"] = "tasks"
    status.resources.add(name="cpus", total=8000, held=2000)
    tables.status(plain(status))
    text = capsys.readouterr().out
    assert "master m (Mesos 1.11.0)" in text
    assert "median 1.0 ms, p99 2.2 ms" in text
    assert "choosy (its own selection, , hierarchical, unit=tasks)" in text
    assert "25.0 %" in text
    assert "observer of" not in text


def test_the_status_of_an_observer_names_what_it_follows(capsys):
    status = pb.GetStatusResponse()
    status.followed.source, status.followed.lag_s = "m1:5058", 1.25
    tables.status(plain(status))
    line = capsys.readouterr().out.splitlines()[0]
    assert line.split(maxsplit=2) == ["observer", "of", "m1:5058, 1.2 s behind, not connected"]


def test_columns_without_content_are_omitted_first(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "piped", lambda: False)
    rows = [("x" * 20, "", "y" * 20)]
    print_table(["first", "second column", "third"], rows, "", ("third",), whole=False)
    head, row, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["first", "second", "column", "third"], "everything fits"
    monkeypatch.setenv("COLUMNS", "50")
    print_table(["first", "second column", "third"], rows, "", ("third",), whole=False)
    head, row, *_ = capsys.readouterr().out.splitlines()
    assert (head.split(), len(row.split())) == (["first", "third"], 2)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("compiling", "compiling, 1 of 3 parts compiled"),
        ("compiled", "compiled"),
        ("plain", "plain Python, which is slow: NUMBA_DISABLE_JIT is set"),
    ],
)
def test_a_status_says_how_far_the_compiled_loops_are(capsys, state, said):
    status = pb.GetStatusResponse(loops_state=state, loop_parts_compiled=1, loop_parts=3)
    tables.status(plain(status))
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("loops")]
    assert line.removeprefix("loops").strip() == said


@pytest.mark.parametrize("name", ["\x1b]0;owned\x07", "[bold red]x[/]", "\u202eevil", "a\nb"])
def test_a_framework_cannot_command_the_terminal(capsys, name):
    answer = pb.GetSharesResponse(clients=[share(framework_name=name, role="eng")])
    share_tables.shares(share_tables.arranged(plain(answer)))
    text = capsys.readouterr().out
    assert not [each for each in text if not each.isprintable() and each != "\n"]
    assert ("[bold red]x[/]" in text) == (name == "[bold red]x[/]")


def test_rules_are_tables(capsys):
    demand = spb.Demand(framework_name="spark*", demand=Quantities(name=["cpus"], amount=[500]))
    others = spb.Demand(role="x", override=True)
    rules = [spb.OperatorChange(demand=each) for each in (demand, others)]
    setting_tables.rules(by_kind(DEMAND, pb.ListRulesResponse(rules=rules)), "demand")
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["role", "framework", "one", "task", "needs", "override"],
        ["*", "spark*", "cpus:0.5", "-"],
        ["x", "*", "unknown", "yes"],
    ]
    setting_tables.rules(by_kind(CONSTRAINT, pb.ListRulesResponse()), "constraint")
    assert capsys.readouterr().out == "no rules\n"


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_reset_says_that_something_was_taken_back(capsys, dry_run):
    """`nothing is set` alone would suggest that nothing had been set before."""
    change = spb.Change(dry_run=dry_run)
    setting_tables.settings(plain(pb.ResetSettingsResponse(change=change)))
    text = capsys.readouterr().out
    assert "nothing is set\n" in text
    assert text.startswith("reset; ") is not dry_run


@pytest.mark.parametrize(
    ("unaffected", "told"),
    [(0, ""), (1, " 1 framework would not change."), (2, " 2 frameworks would not change.")],
)
def test_frameworks_that_a_policy_does_not_affect_are_counted(capsys, unaffected, told):
    change = spb.Change(dry_run=True, would_be="tsf (its own selection, oblivious, hierarchical)")
    answer = pb.SetPolicyResponse(change=change, unaffected=unaffected)
    setting_tables._forecasts(plain(answer))
    assert capsys.readouterr().out.endswith(f"difference of the ends.{told}\n")


@pytest.mark.parametrize("complete", [True, False])
def test_settings_that_differ_are_shown_first_and_on_a_terminal_alone(
    capsys, monkeypatch, complete
):
    monkeypatch.setattr(setting_tables, "piped", lambda: False)
    rows = [("http.port", "default"), ("limit", "operator"), ("log.level", "file")]
    found = [spb.Setting(key=key, value="1", source=source) for key, source in rows]
    data = plain(pb.ListSettingsResponse(settings=found))
    setting_tables.settings(data, complete=complete)
    _, *lines = capsys.readouterr().out.splitlines()
    others = "1 other setting with defaults; `settings show --all` shows all"
    assert lines[-1] == others or complete
    names = [line.split()[0] for line in lines if line != others]
    assert names == ["limit", "log.level", *(["http.port"] if complete else [])]


def test_the_directory_of_a_configuration_is_named_once(capsys):
    file = "/etc/mesos-allocator/config.toml"
    rows = [
        spb.Setting(key="http.port", value="1", source="file", place=f"{file}:3"),
        spb.Setting(key="log.level", value="2", source="file", place=f"{file}:8"),
        spb.Setting(key="policy.name", value="3", source="default"),
        spb.Setting(key="limits.agents", value="4", source="file", place="/other/config.toml:5"),
    ]
    setting_tables.settings({"settings": [plain(row) for row in rows]})
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines()]
    assert ["http.port", "1", "-", "config.toml:3"] in lines
    assert ["log.level", "2", "-", "config.toml:8"] in lines
    assert ["limits.agents", "4", "-", "/other/config.toml:5"] in lines
    assert lines[-1] == ["config.toml:", file]


def test_each_column_of_a_forecast_has_a_name_of_its_own(capsys):
    policy = {"name": "drf", "selection": "", "mode": "oblivious", "flat": False}
    forecast = {"framework_name": "spark", "framework_id": "id-1", "role": "eng", "share": 0.5}
    for name in ("offered", "agents", "fair"):
        forecast |= {f"{name}_now": 1, f"{name}_then": 2}
    match = {"frameworks_total": 0, "agents_total": 0}
    change = {"dry_run": True, "would_be": "ps-dsf (its own)", "warnings": [], "match": match}
    setting_tables.policy(
        {
            "policy": policy | {"parameters": {}, "subtrees": {}},
            "change": change,
            "forecasts": [forecast],
            "unaffected": 1,
        }
    )
    first, _, head, *_ = capsys.readouterr().out.splitlines()
    assert first == "drf now; ps-dsf would decide:"
    for each in ("next now", "next ps-dsf", "end now", "end ps-dsf", "change"):
        assert head.count(each) == 1
