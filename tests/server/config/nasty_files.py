"""Files and other objects in place of a configuration, all of them invalid."""

import os
import socket
from collections.abc import Callable
from pathlib import Path


def text(content: str | bytes) -> Callable[[Path], None]:
    data = content.encode() if isinstance(content, str) else content

    def put(path: Path) -> None:
        path.write_bytes(data)

    return put


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 * 2**20)


def of_a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))


def plugin(code: str) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        (path.parent / "mine.py").write_text(code)
        path.write_text(f'[policy]\nplugins = ["{path.parent}/mine.py"]\n')

    return put


def plugin_at(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        at = path.parent / "other.py"
        if not os.path.lexists(at):
            make(at)
        path.write_text(f'[policy]\nplugins = ["{at}"]\n')

    return put


def token_at(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        make(path.parent / "token")
        path.write_text(f'[access]\nadmin_read_token = "{path.parent}/token"\n')

    return put


NASTY: dict[str, Callable[[Path], None]] = {
    "no UTF-8": text(b"[http]\nport = \xff\xfe"),
    "UTF-16": text("[http]\nport = 1".encode("utf-16")),
    "a NUL": text("[http]\nport = \0"),
    "a NUL in a value": text('[http]\nhost = "a\\u0000b"'),
    "a NUL in a path": text('[journal]\npath = "/tmp/a\\u0000b"'),
    "a directory": Path.mkdir,
    "a FIFO": os.mkfifo,
    "a socket": of_a_socket,
    "a loop of links": lambda path: path.symlink_to(path),
    "a link to nothing": lambda path: path.symlink_to("none"),
    "nothing": lambda path: None,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a terminal": lambda path: path.symlink_to("/dev/tty"),
    "100 MB": huge,
    "deep lists": text("x = " + "[" * 100_000 + "]" * 100_000),
    "deep tables": text("x = " + "{a = " * 50_000 + "1" + "}" * 50_000),
    "a deep key": text(".".join(["a"] * 5_000) + " = 1"),
    "a deep header": text("[" + ".".join(["a"] * 20_000) + "]\nx = 1"),
    "a value of many lines": text("[[drain]]\nagent = [\n" + '"x",\n' * 200_000 + "]\n"),
    "many unknown sections": text("".join(f"[x{n}]\n" for n in range(20_000))),
    "many wrong rules": text('[[limit]]\nrole = ""\nresources = "x"\n' * 5_000),
    "a number of many digits": text("[limits]\nroles = " + "9" * 10_000),
    "a hexadecimal number of many digits": text("[limits]\nroles = 0x" + "f" * 10_000),
    "a huge weight": text('[[weight]]\nrole = "a"\nweight = 0x' + "f" * 1_000),
    "a weight that is none": text('[[weight]]\nrole = "a"\nweight = nan'),
    "an infinite weight": text('[[weight]]\nrole = "a"\nweight = 9e999999'),
    "a part that is none": text("[starvation]\noutstanding_max = nan"),
    "an infinite time": text("[metrics]\nfair_share_every_s = inf"),
    "a date": text("[limits]\nroles = 1979-05-27"),
    "a huge demand": text('[[demand]]\nrole = "a"\nresources = "cpus:9e999999"'),
    "a huge limit": text('[[limit]]\nrole = "a"\nresources = "cpus:9e999999"'),
    "a tiny limit": text('[[limit]]\nrole = "a"\nresources = "cpus:1e-999999999"'),
    "a demand that is none": text('[[demand]]\nrole = "a"\nresources = "cpus:nan"'),
    "a signalling demand": text('[[demand]]\nrole = "a"\nresources = "cpus:sNaN"'),
    "a role that is none": text('[[limit]]\nrole = "a//b"\nresources = "cpus:1"'),
    "a role that is too deep": text(f'[[limit]]\nrole = "{"a/" * 99}a"\nresources = "cpus:1"'),
    "a constraint that is none": text('[[constraint]]\nrole = "a"\nagents = "zone<3"'),
    "a parameter that is none": text('[policy]\nname = "choosy"\nparameters.unit = "9e999999"'),
    "parameters of none": text('[policy]\nname = "quincy"\nparameters.most = "9e999999"'),
    "a subtree that is none": text('[policy]\nsubtrees."a//b" = "drf"'),
    "a subtree of none": text('[policy]\nsubtrees.a = ":,=,"'),
    "a shadow that is none": text('[shadow]\npolicy = "drff"'),
    "a token that is a FIFO": token_at(os.mkfifo),
    "a policy that ends the process": plugin("import sys; sys.exit(3)"),
    "a policy that raises anything": plugin("class E(BaseException): pass\nraise E('odd')"),
    "a policy that exits a generator": plugin("raise GeneratorExit"),
    "a policy that is no text": plugin("POLICIES = {'a': 3}\n"),
    "a policy with a NUL": plugin("x = '\0'"),
    "a policy of deep brackets": plugin("x = " + "(" * 10_000 + ")" * 10_000),
    "a policy that is a FIFO": plugin_at(os.mkfifo),
    "a policy that is a directory": plugin_at(Path.mkdir),
    "a policy in a loop": plugin_at(lambda at: at.symlink_to(at)),
}


def remove(path: Path) -> None:
    """Remove any kind of file."""
    for each in (path, *(path.parent / name for name in ("token", "mine.py", "other.py"))):
        if each.is_dir() and not each.is_symlink():
            each.rmdir()
        elif os.path.lexists(each):
            each.unlink()
