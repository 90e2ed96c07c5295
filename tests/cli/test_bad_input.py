"""The reaction of each command to bad input: one line on standard error, and the exit code.

Commands are taken from the tree: a command without an entry in a table fails.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.command_tree import LAB, invoke, leaves, options
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.grpc.certificates import Authority
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.tiers import long

LEAVES = leaves()

# Valid commands; a place holder stands for each of the sidecar's commands.
RIGHT: dict[str, str] = {
    "status": "",
    "shares": "",
    "top": "",
    "dump": "",
    "snapshot": "{tmp}/snapshot",
    "bundle": "{tmp}/bundle.tar.gz",
    "explain framework": "spark",
    "explain role": "eng",
    "explain agent": "a1",
    "agents": "a1",
    "frameworks": "spark",
    "roles": "eng",
    "policy show": "",
    "policy set": "tsf",
    "demand list": "",
    "demand set": "cpus:1 --all",
    "demand remove": "--all",
    "constraint list": "",
    "constraint set": "zone=a --all",
    "constraint remove": "--all",
    "limit list": "",
    "limit set": "eng cpus:1",
    "limit remove": "eng",
    "weight list": "",
    "weight set": "2 --all",
    "weight remove": "--all",
    "gang list": "",
    "gang set": "8 --all",
    "gang remove": "--all",
    "budget list": "",
    "budget set": "eng gpus:5h",
    "budget clear": "eng",
    "budget credit": "eng gpus:5h",
    "pause list": "",
    "pause set": "eng",
    "pause remove": "eng",
    "resume": "eng",
    "claim list": "",
    "claim set": "eng cpus:1",
    "claim remove": "eng",
    "cap list": "",
    "cap set": "eng cpus:1 --per user",
    "cap remove": "eng",
    "schedule list": "",
    "schedule remove": "none",
    "drain list": "",
    "drain set": "a1",
    "drain remove": "a1",
    "shadow show": "",
    "shadow set": "tsf",
    "shadow stop": "",
    "settings show": "",
    "settings export": "",
    "settings reset": "--all",
    "settings history": "",
    "settings revert": "1",
    "apply": "-f -",
    "usage show": "",
    "usage reset": "--yes",
    "usage forget": "--yes",
}

# Command, error, exit code, and a part of the line.
WRONG: list[tuple[str, str, int, str]] = [
    ("observe", "", 78, "observer.sources"),
    ("serve", "--config {tmp}/none.toml", 2, "none.toml"),
    ("serve", "--set http.port", 2, "'http.port' is not of the form section.key=value"),
    ("check-config", "{tmp}/none.toml", 2, "none.toml"),
    ("check-config", "--set http.port=-1", 78, "http.port"),
    ("warm", "--part nothing", 2, "unknown part 'nothing'"),
    ("graph", "{tmp}/corrupt /proc/g.json", 1, "/proc/g.json cannot be written: No such file"),
    ("graph", "{tmp}/corrupt {tmp}/none/g.json", 1, "{tmp}/none is not a directory"),
    ("replay", "{tmp}/none", 2, "{tmp}/none"),
    ("replay", "{tmp}/empty", 1, "no journal in {tmp}/empty"),
    ("replay", "{tmp}/nothing", 1, "{tmp}/nothing: contains no records"),
    ("graph", "{tmp}/nothing {tmp}/g.json", 1, "{tmp}/nothing"),
    ("replay", "{tmp}/corrupt", 1, "{tmp}/corrupt"),
    ("replay", "{tmp}/corrupt --plugin {tmp}/none.py", 2, "--plugin {tmp}/none.py"),
    ("graph", "{tmp}/none {tmp}/g.json", 2, "{tmp}/none"),
    ("graph", "{tmp}/corrupt {tmp}/g.json", 1, "{tmp}/corrupt"),
    ("graph", "{tmp}/corrupt {tmp}/g.doc", 2, "'g.doc' must end in one of"),
    ("snapshot", "{tmp}/none/file", 1, "{tmp}/none/file"),
    ("bundle", "", 2, "FILE.tar.gz"),
    ("bundle", "{tmp}/none/bundle.tar.gz", 1, "none/bundle.tar.gz: No such file"),
    ("dump", "{tmp}/none/file", 1, "{tmp}/none/file"),
    ("dump", "-o name", 2, "--output name: a dump is always JSON; leave it out"),
    ("dump", "{tmp}/file -o {tmp}/other", 2, "is not a format, and the file is"),
    ("status", "--tls-ca {tmp}/none.pem", 2, "{tmp}/none.pem"),
    ("status", "--token-file {tmp}/none", 2, "{tmp}/none"),
    ("status", "--timeout 0", 2, "'--timeout': must be greater than or equal to 0.001"),
    ("status", "--timeout inf", 2, "'--timeout': must be less than or equal to 1000000"),
    ("status", "--output table", 2, "--output"),
    ("shares", "--role nobody", 4, "role = 'nobody': there is no such role"),
    ("shares", "--newcomer a//b", 4, "is not a role; write it as 'eng' or 'eng/ads'"),
    ("shares", "--newcomer eng --newcomer-demand cpus", 2, "'cpus'"),
    ("shares", "--newcomer-demand cpus:1", 2, "--newcomer-demand needs --newcomer"),
    ("shares", "--role ENG", 4, "role = 'ENG': there is no such role; did you mean 'eng'?"),
    ("shares", "--sort size", 2, "--sort"),
    ("top", "--role nobody", 4, "role = 'nobody': there is no such role"),
    ("explain framework", "sparc", 4, "framework = 'sparc': there is no such framework"),
    ("explain role", "nobody", 4, "role = 'nobody': there is no such role"),
    ("explain agent", "a9", 4, "agent = 'a9': there is no such agent"),
    ("settings show", "--at noon", 2, "--at: 'noon': give a time such as 2026-12-24T18:00 or +2h"),
    ("settings show", "--at 2020-01-01", 4, "at = 2020-01-01 00:00 UTC: is in the past; give a"),
    ("policy set", "", 2, "name a policy, or give an option to change"),
    ("policy set", "dfr", 4, "dfr"),
    ("policy set", "ps_dsf", 4, "did you mean 'ps-dsf'?"),
    ("policy set", "drf --subtree eng=ps_dsf", 4, "did you mean 'ps-dsf'?"),
    ("policy set", "DRF", 4, "did you mean 'drf'?"),
    ("policy set", "--mode both", 2, "'--mode': 'both' is not one of 'oblivious'"),
    ("policy set", "--selection none", 4, "none"),
    ("policy set", "-p unit", 2, "'unit' is not of the form key=value"),
    ("policy set", "--subtree eng", 2, "'eng' is not of the form role=policy"),
    ("policy set", "choosy -p unit=yards", 4, "unit"),
    ("demand set", "cpus --all", 2, "'cpus'"),
    ("demand set", "cpus:1", 2, "a rule for every framework needs --all"),
    ("demand set", "cpus:-1 --all", 2, "cpus"),
    ("demand remove", "", 2, "a rule for every framework needs --all"),
    ("agents", "nope", 4, "agent = 'nope': there is no such agent"),
    ("agents", "--watch", 2, "--watch draws a table on a terminal; leave it out"),
    ("agents", "--limit 10001", 2, "must be less than or equal to 10000"),
    ("agents", "--state drain", 4, "did you mean 'drained'?"),
    ("frameworks", "sparc", 4, "framework = 'sparc': there is no such framework"),
    ("roles", "opps", 4, "role = 'opps': there is no such role"),
    ("demand remove", "--role nobody", 4, "nobody"),
    ("constraint set", "zone<3 --all", 4, "zone<3"),
    ("constraint set", "zone=a --all --role x", 2, "--all cannot be used with"),
    ("constraint remove", "--role nobody", 4, "nobody"),
    ("limit set", "eng cpus", 2, "'cpus'"),
    ("limit remove", "nobody", 4, "nobody"),
    ("weight set", "0 --all", 2, "weight = '0': give a number from 1e-06 to 1e+06, such as 2"),
    ("weight set", "-1 --all", 2, "weight = '-1': give a number from"),
    ("weight set", "--all -1.5", 2, "weight = '-1.5': give a number from"),
    ("weight set", "much --all", 2, "weight = 'much': give a number from"),
    ("weight set", "nan --all", 2, "weight = 'nan': give a number from"),
    ("gang set", "many --all", 2, "tasks = 'many': give a whole number from 1 to 100000"),
    ("gang set", "100001 --all", 2, "tasks = '100001': give a whole number from 1 to 100000"),
    ("gang set", "8", 2, "a rule for every framework needs --all"),
    ("gang remove", "--role nobody", 4, "nobody"),
    ("budget set", "eng gpus:5", 2, "gpus"),
    ("budget set", "eng gpus:5h --per year", 4, "year"),
    ("budget clear", "nobody", 4, "nobody"),
    ("budget credit", "nobody gpus:5h", 2, "nobody"),
    ("pause set", "eng/ --dry-run", 4, "eng/"),
    ("pause remove", "nobody", 4, "nobody"),
    ("resume", "nobody", 4, "nobody"),
    ("claim set", "eng cpus", 2, "'cpus'"),
    ("claim set", "eng cpu:1", 4, "no agent has any 'cpu'"),
    ("claim remove", "nobody", 4, "there is no claim of role 'nobody'"),
    ("cap set", "eng cpus", 2, "'cpus'"),
    ("cap set", "eng cpus:1 --per host", 4, "'host' is not possible; give framework, principal"),
    ("cap set", "eng cpus:0", 4, "no cpus would be granted in 'eng' and below it"),
    ("cap remove", "nobody --per user", 4, "there is no cap per user in role 'nobody'"),
    ("schedule remove", "none", 4, "none"),
    ("limit set", "eng -5", 2, "-5"),
    ("limit set", "eng cpu:1", 4, "no agent has any 'cpu'"),
    ("drain set", "nope", 4, "no agent has the id or host name 'nope'"),
    ("drain set", "a1,a2", 4, "'a1,a2' now; blanks stand between agents"),
    ("weight remove", "--role nobody", 4, "nobody"),
    ("drain set", "", 2, "agents"),
    ("drain remove", "a9", 4, "a9"),
    ("shadow set", "dfr", 4, "dfr"),
    ("apply", "-f {tmp}/none.toml", 2, "none.toml: No such file or directory"),
    ("apply", "", 2, "--file"),
    ("settings export", "-o json", 2, "--output json: an export is TOML"),
    ("settings history", "--limit 0", 2, "--limit"),
    ("settings revert", "", 2, "'number'"),
    ("settings revert", "0", 2, "'number': must be greater"),
    ("settings revert", "one", 2, "'number': must be a valid integer"),
    ("settings revert", "987654321", 4, "number = 987654321: there is no such change"),
    ("usage show", "--since xx", 2, "--since 'xx': is no time; write it as 7d"),
    ("usage show", "--by host", 2, "'--by': 'host' is not one of"),
    ("usage show", "--journal {tmp}/none", 2, "none: No such file or directory"),
    ("usage reset", "--yes all", 2, "all"),
    ("usage forget", "--yes eng", 2, "eng"),
    ("usage forget", "--yes --role eng", 4, "half_life_s: no averages are kept; set fairness."),
    ("settings reset", "everything", 4, "everything"),
    ("settings reset", "polici", 4, "did you mean 'policy'?"),
    ("settings reset", "everything --dry-run", 2, "everything"),
    ("settings reset", "", 2, "or give --all"),
    ("settings reset", "policy --all", 2, "or give --all"),
]

# The same of commands of the laboratory.
WRONG_IN_LAB: list[tuple[str, str, int, str]] = [
    ("demo", "--policies dfr", 2, "'dfr'; choose from drf"),
    ("demo", "--modes both", 2, "'both'; choose from oblivious"),
    ("demo", "--trace none", 2, "'none'; choose from section-v"),
    ("demo", "--agents 7", 2, "--agents: section-v has the paper's six agents"),
    ("demo", "--target unix:{tmp}/none --policies drf --modes oblivious", 3, "{tmp}/none"),
    ("demo", "--out {tmp}/corrupt/out", 2, "{tmp}/corrupt is not a directory"),
    ("demo", "--out /proc/x", 2, "/proc/x: /proc cannot be written: No such file"),
    ("demo claims", "--out /proc/x/y", 2, "/proc/x/y: /proc cannot be written: No such file"),
    ("demo claims", "--out {tmp}/corrupt", 2, "{tmp}/corrupt is not a directory"),
    ("simulate", "{tmp}/broken.toml --out {tmp}/corrupt", 2, "{tmp}/corrupt is not a directory"),
    ("simulate", "{tmp}/broken.toml --out /proc", 2, "/proc cannot be written: No such file"),
    ("simulate", "/dev/zero", 78, "/dev/zero: has more than"),
    ("reproduce all", "--plot /proc/x", 2, "/proc cannot be written: No such file"),
    ("reproduce pages", "--out /proc/x", 2, "/proc cannot be written: No such file"),
    ("advise", "{tmp}/nothing --out /proc/x", 2, "/proc cannot be written: No such file"),
    ("replay", "{tmp}/nothing --policy drf --out /proc/x", 2, "/proc cannot be written: No such"),
    ("reproduce all", "--plot {tmp}/corrupt", 2, "{tmp}/corrupt is not a directory"),
    ("demo", "--workers 9999", 2, "--workers"),
    ("demo soak", "--size 99999999", 2, "--size"),
    ("demo claims", "--seeds 1", 2, "--seeds"),
    ("demo claims", "--cores 0", 2, "--cores: must not be 0"),
    ("demo claims", "--backend nonsense", 2, "'nonsense'; choose from loky, dask"),
    ("demo demands", "--mode none", 2, "'none'; choose from coarse"),
    ("demo demands", "--policy dfr", 2, "'dfr'; choose from drf"),
    ("demo soak", "--policy dfr", 2, "'dfr'; choose from drf"),
    ("demo soak", "--target unix:{tmp}/none", 3, "{tmp}/none"),
    ("reproduce pages", "--only none", 2, "none; choose from kesidis-table-1"),
    ("reproduce all", "--seed -1", 2, "--seed"),
    ("reproduce list", "--seed 1", 2, "--seed"),
    ("simulate", "{tmp}/none.toml", 2, "none.toml"),
    ("simulate", "{tmp}/broken.toml", 78, "broken.toml"),
    ("simulate", "{tmp}/broken.toml --policy dfr", 2, "'dfr'; choose from drf"),
    ("advise", "{tmp}/none", 2, "{tmp}/none"),
    ("advise", "{tmp}/empty", 1, "{tmp}/empty: contains no journal"),
    ("advise", "{tmp}/nothing", 1, "{tmp}/nothing"),
    ("advise", "{tmp}/corrupt", 1, "{tmp}/corrupt"),
    ("advise", "{tmp}/nothing --out {tmp}/corrupt", 2, "{tmp}/corrupt is not a directory"),
    ("advise", "{tmp}/nothing --seeds 1", 2, "--seeds"),
    ("advise", "{tmp}/nothing --jobs 0", 2, "--jobs"),
    ("advise", "{tmp}/nothing --backend bee", 2, "'bee'; choose from"),
    ("demo", "--policies ps_dsf", 2, "did you mean 'ps-dsf'?"),
    ("replay", "{tmp}/nothing", 2, "'--policy'"),
    ("replay", "{tmp}/empty --policy drf", 1, "no journal in {tmp}/empty"),
    ("replay", "{tmp}/corrupt --policy dfr", 2, "'dfr'"),
    ("replay", "{tmp}/corrupt --policy drf --mode best", 2, "'best' is not one of"),
]
WRONG += [(f"{LAB} {command}", words, code, part) for command, words, code, part in WRONG_IN_LAB]

NO_OTHER = {
    "status", "dump", "policy show", "demand list", "constraint list", "limit list",
    "weight list", "gang list", "drain list", "shadow show", "shadow stop",
    "budget list", "pause list", "claim list", "cap list", "schedule list",
}  # fmt: skip
"""Commands of a sidecar without parameters of their own that could be wrong."""


def call(words: str, tmp: Path, *more: str) -> Result:
    return invoke([*words.format(tmp=tmp).split(), *more])


def is_one_line(done: Result, code: int, part: str) -> str:
    """Check the code and the line, JSON under --json; returns the standard output."""
    problem = done.exception
    assert problem is None or isinstance(problem, SystemExit), problem
    assert done.exit_code == code, done.output
    # Progress may be printed before the error.
    (line,) = (line for line in done.stderr.splitlines() if not line.startswith("reading "))
    if line.startswith("{"):
        error = json.loads(line)["error"]
        assert error["code"] == code
        line = "error: " + error["message"]
    assert line.startswith("error: ")
    assert part in line
    return done.stdout


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory):
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text("a-long-secret\n")
    flags = (f"access.admin_write_token={token}", f"access.admin_read_token={token}")
    with SidecarProcess(*flags) as process:
        channel = process.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        module.batch()
        process.token = token  # type: ignore[attr-defined]
        yield process
        assert process.alive
        module.leave()
        channel.close()


@pytest.fixture
def files(tmp_path) -> Path:
    """A directory with a file that is neither a journal nor a scenario."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing").touch()
    (tmp_path / "corrupt").write_bytes(b"this is no journal " * 99)
    (tmp_path / "broken.toml").write_text("[cluster\n")
    return tmp_path


@pytest.fixture(scope="module")
def pems(tmp_path_factory, tool) -> Path:
    """A certificate authority with a valid and an expired certificate."""
    directory = tmp_path_factory.mktemp("pems")
    authority = Authority(tool("openssl"), directory)
    authority.sign("valid")
    authority.sign("expired", days=-1)
    return directory


def with_tls(pems: Path, name: str, *flags: str) -> SidecarProcess:
    files = f"listen.tls_cert={pems}/{name}.pem", f"listen.tls_key={pems}/{name}.key"
    return SidecarProcess(*files, *flags)


def ours(pems: Path, name: str) -> list[str]:
    return ["--tls-cert", f"{pems}/{name}.pem", "--tls-key", f"{pems}/{name}.key"]


@pytest.fixture(scope="module")
def with_expired(pems):
    with with_tls(pems, "expired") as process:
        yield process


@pytest.fixture(scope="module")
def wants_certificates(pems):
    with with_tls(pems, "valid", f"listen.tls_client_ca={pems}/ca.pem") as process:
        yield process


@pytest.mark.parametrize("command", RIGHT)
def test_an_expired_certificate_of_ours_is_named(pems, command, tmp_path):
    given = ["--tls-ca", f"{pems}/ca.pem", *ours(pems, "expired")]
    done = call(f"{command} {RIGHT[command]}", tmp_path, *given)
    is_one_line(done, 2, "expired.pem: has expired (20")


@pytest.mark.parametrize("command", ["status", "dump", "snapshot", "drain set"])
def test_a_sidecar_whose_certificate_has_expired_is_not_believed(
    pems, with_expired, command, tmp_path
):
    target = with_expired.targets[0]
    given = ["--target", target, "--tls-ca", f"{pems}/ca.pem"]
    part = f"the certificate of the sidecar at {target}: certificate has expired"
    is_one_line(call(f"{command} {RIGHT[command]}", tmp_path, *given), 3, part)


def test_a_certificate_that_is_wanted_is_asked_for(pems, wants_certificates, tmp_path):
    target, authority = wants_certificates.targets[0], ["--tls-ca", f"{pems}/ca.pem"]
    for given in ([], authority):
        done = call("status", tmp_path, "--target", target, *given)
        is_one_line(done, 3, f"the sidecar at {target} closed the connection; it may need TLS")
    valid = call("status", tmp_path, "--target", target, *authority, *ours(pems, "valid"))
    assert valid.exit_code == 0


def test_grpc_adds_no_lines_of_its_own(pems, with_expired):
    """The C library prints them, bypassing Python's standard error."""
    words = ["status", "--target", with_expired.targets[0], "--tls-ca", f"{pems}/ca.pem"]
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    done = subprocess.run(
        [sys.executable, "-m", "allocator", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_every_command_has_a_case():
    of_sidecars = {" ".join(path) for path in LEAVES if "--target" in options(LEAVES[path])}
    of_sidecars -= {f"{LAB} demo", f"{LAB} demo soak"}
    assert RIGHT.keys() == of_sidecars
    experiments = {
        " ".join(path)
        for path in LEAVES
        if path[:2] == (LAB, "reproduce") and "--plot" in options(LEAVES[path])
    }
    known = {command for command, *_ in WRONG} | NO_OTHER | experiments
    assert {" ".join(path) for path in LEAVES} <= known


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_a_mistyped_option_is_wrong_usage(path, tmp_path):
    assert not is_one_line(call(" ".join(path), tmp_path, "--nonsense"), 2, "--nonsense")
    if "--json" in options(LEAVES[path]):
        is_one_line(call(" ".join(path), tmp_path, "--nonsense", "--json"), 2, "--nonsense")


@pytest.mark.parametrize("number", ["nan", *long("inf", "-inf")])
def test_a_number_without_an_end_is_wrong_usage(number, tmp_path):
    asked = 0
    for path, command in LEAVES.items():
        arguments = ["x"] * sum(each.opts[0][0] != "-" for each in command.params)
        for each in command.params:
            if each.type_descriptor.annotation is float:
                done = call(" ".join(path), tmp_path, f"{each.opts[0]}={number}", *arguments)
                assert not is_one_line(done, 2, each.opts[0])
                asked += 1
    assert asked > len(RIGHT)


@pytest.mark.parametrize(("command", "words", "code", "part"), WRONG)
def test_bad_input_is_one_line_and_an_exit_code(sidecar, files, command, words, code, part):
    more = []
    if command in RIGHT and "--token-file" not in words:
        more = ["--target", sidecar.targets[0], "--token-file", str(sidecar.token)]
    part = part.format(tmp=files)
    printed = is_one_line(call(f"{command} {words}", files, *more), code, part)
    assert not printed or (command, code) == ("replay", 1), "it reports what it found, too"
    if "--json" in options(LEAVES[tuple(command.split())]):
        is_one_line(call(f"{command} {words}", files, *more, "--json"), code, part)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("weight set 2 b", "extra argument(s) (b); did you mean --role b? See"),
        ("demand remove spark", "did you mean --role spark? See"),
        ("policy list", "'list'; did you mean 'show'? See"),
        ("drain show", "'show'; did you mean 'list'? See"),
        ("help status", "'help'; append --help to a command; see"),
        *((f"limit {word} eng", "did you mean 'remove'?") for word in ("unset", "clear", "rm")),
        ("limit delete eng", "did you mean 'remove'?"),
        ("settings clear", "did you mean 'reset'?"),
        ("wieght list", "Did you mean 'weight'?"),
        ("get agents", "'get'; did you mean 'agents, frameworks or roles'? See"),
        ("nodes", "did you mean 'agents'? See"),
        ("version", "'version'; did you mean '--version'? See"),
        ("logs -f", "'logs'; journalctl --unit mesos-allocator shows the log; see"),
        ("describe framework spark", "did you mean 'explain'? See"),
        ("cordon 10.0.0.7", "did you mean 'drain set'? See"),
        ("drain 10.0.0.7", "did you mean 'set 10.0.0.7'? See mesos-allocator drain --help"),
        ("explain spark", "did you mean 'framework spark'? See mesos-allocator explain --help"),
        ("policy sett", "Did you mean 'set'?"),
    ],
)
def test_words_that_are_common_elsewhere_are_answered_with_ours(words, part, tmp_path):
    assert not is_one_line(call(words, tmp_path), 2, part)


def test_an_error_before_playing_leaves_no_files(files):
    words = f"{files}/none.toml --out {files}/new/out"
    is_one_line(call(f"{LAB} simulate {words}", files), 2, "none.toml")
    assert not (files / "new").exists()
    is_one_line(call(f"graph {files}/corrupt {files}/g.json", files), 1, "corrupt")
    assert not (files / "g.json").exists()


@pytest.mark.parametrize(
    "target", ["", "x", "http://127.0.0.1:5056", "127.0.0.1:99999", "127.0.0.1", "unix:a", "5056"]
)
def test_a_target_that_is_none_is_wrong_usage(target, tmp_path):
    done = call("status", tmp_path, "--target", target)
    assert not is_one_line(done, 2, f"--target {target!r}: ")


@pytest.mark.parametrize("command", RIGHT)
def test_an_unreachable_sidecar_is_an_error(command, tmp_path):
    target = f"unix:{tmp_path}/none"
    part = f"no sidecar answers at {target}; is it running?"
    words = f"{command} {RIGHT[command]}"
    assert not is_one_line(call(words, tmp_path, "--target", target), 3, part)
    if command != "settings export":  # it writes TOML only
        is_one_line(call(words, tmp_path, "--target", target, "--json"), 3, part)


@pytest.mark.parametrize("command", RIGHT)
def test_a_wrong_token_is_refused(sidecar, command, tmp_path):
    (tmp_path / "wrong").write_text("another-secret\n")
    given = ["--target", sidecar.targets[0], "--token-file", f"{tmp_path}/wrong"]
    done = call(f"{command} {RIGHT[command]}", tmp_path, *given)
    is_one_line(done, 4, "the token is wrong: it has no right admin_")
    assert "another-secret" not in done.stderr


def test_a_missing_token_is_refused_in_other_words_than_a_wrong_one(sidecar, tmp_path):
    done = call("status", tmp_path, "--target", sidecar.targets[0])
    is_one_line(done, 4, "callers without a certificate have no right admin_read")


def test_a_file_with_an_empty_token_is_wrong_usage(tmp_path):
    (tmp_path / "empty").write_text(" \n")
    done = call("status", tmp_path, "--token-file", f"{tmp_path}/empty")
    assert not is_one_line(done, 2, f"--token-file {tmp_path}/empty: is empty")
