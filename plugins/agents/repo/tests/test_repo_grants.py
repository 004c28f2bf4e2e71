"""What a repository asks for is granted by the person who runs it, or it gets nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import mleredux
import pytest
from mleredux.errors import AgentBroken, MlereduxError, NotGranted
from mleredux.models import RunPlan
from mleredux.plugin.agent import Grants
from mleredux.plugin.command import current
from mleredux_agent_repo.agents import agent_of
from mleredux_agent_repo.manifest import BadManifest, read_manifest
from mleredux_containers import images_of
from mleredux_support.plans import plan_of

ASKING = """\
[agent]
id = "asker"
command = ["python", "/opt/agent/solve.py"]
network = "open"

[build]
dockerfile = "Dockerfile"

[environment]
secrets = ["OPENAI_API_KEY"]
pass = ["AWS_SECRET_ACCESS_KEY"]

[network]
build = ["files.example.org"]
run = ["data.example.org:8443"]
"""
FLAGS = (
    *("--pass-env", "AWS_SECRET_ACCESS_KEY", "--network", "open", "--allow-host", "build:files.example.org"),
    *("--allow-image", "registry.example/team/base:*"),
)


@pytest.fixture
def asking(write_agent: Any) -> Path:
    folder: Path = write_agent(
        "asking",
        **{
            "mleredux-agent.toml": ASKING,
            "Dockerfile": "ARG BASE_IMAGE\nARG V=1\nFROM registry.example/team/base:$V AS one\nFROM ${BASE_IMAGE}\n"
            "COPY --from=one /x /x\n",
        },
    )
    return folder


def planned(folder: Path, **more: Any) -> RunPlan:
    return plan_of(current(), "digits", f"repo:{folder}", sandbox="docker", **more)


@pytest.mark.attack
def test_nothing_that_was_not_granted_is_planned(asking: Path) -> None:
    with pytest.raises(NotGranted) as error:
        planned(asking)
    said = str(error.value)
    assert "\n" not in said
    for flag in (
        *("--pass-env AWS_SECRET_ACCESS_KEY", "--network open", "--allow-host build:files.example.org"),
        *("--allow-host data.example.org:8443", "--allow-image registry.example/team/base:1"),
    ):
        assert flag in said
    assert "--pass-env OPENAI_API_KEY" not in said, "what can't be granted is not asked for"
    grants = {"variables": ("AWS_SECRET_ACCESS_KEY",), "build_hosts": ("files.example.org",)}
    some = Grants.model_validate(grants)
    with pytest.raises(NotGranted, match=r"requests the image registry\.example/team/base:1, which was not granted"):
        planned(asking, network="open", grants=some)
    fields = planned(asking, network="open", grants=some.model_copy(update={"images": ("registry.example/*",)}))
    assert fields.network == "open" and fields.grants.variables == ("AWS_SECRET_ACCESS_KEY",)
    with pytest.raises(NotGranted):
        mleredux.run("digits", f"repo:{asking}", grants=grants)


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "CORPORATE_LLM_KEY", "MLEREDUX_TOKEN"])
@pytest.mark.attack
def test_keys_of_the_gateway_and_ours_are_never_granted(
    asking: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(
        '[upstreams.x]\nprotocol = "openai"\nbase_url = "https://llm.example/v1"\nkey_env = "CORPORATE_LLM_KEY"\n'
    )
    monkeypatch.setenv("MLEREDUX_GATEWAY_CONFIG", str(config))
    with pytest.raises(NotGranted, match=f"{name} can't be passed to any agent"):
        planned(asking, network="open", grants=Grants(variables=(name,), images=("*",)))
    with pytest.raises(NotGranted, match=f"{name} can't be passed"):
        plan_of(current(), "digits", "dummy", grants=Grants(variables=(name,)))


@pytest.mark.attack
def test_a_protected_value_is_not_passed_by_another_name(asking: Path) -> None:
    from mleredux._core.sandboxes.variables import passed_variables

    agent = agent_of(f"repo:{asking}")
    environment = {"OPENAI_API_KEY": "sk-1", "COPY": "sk-1", "AWS_SECRET_ACCESS_KEY": "aws", "OTHER": "x"}
    granted = Grants(variables=("COPY", "OTHER"))
    assert passed_variables(agent, granted, environment, {"OPENAI_API_KEY"}) == {"OTHER": "x"}
    assert agent.secrets == ("AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"), "masked, whichever list names it"


def command(*arguments: str, **more: Any) -> list[str]:
    return [sys.executable, "-m", "mleredux", *arguments]


def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "AWS_SECRET_ACCESS_KEY": "planted-aws-0123456789", "OPENAI_API_KEY": "sk-planted-0123456789"}


@pytest.mark.parametrize("words", [["run", "digits", "--agent"], ["agent", "check"]])
def test_without_a_terminal_the_options_are_named(asking: Path, tmp_path: Path, words: list[str]) -> None:
    ended = subprocess.run(
        command(*words, f"repo:{asking}"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        cwd=tmp_path,
    )
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert (ended.stdout + ended.stderr).count("any public host") == 1, "what it asks for is printed once"
    assert "Grant it with `--pass-env AWS_SECRET_ACCESS_KEY" in ended.stderr
    assert "planted" not in ended.stdout + ended.stderr
    assert not list(tmp_path.glob("runs/*/run.json"))


def test_everything_asked_for_is_printed_by_a_static_check(asking: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        command("agent", "check", "--static", str(asking)), capture_output=True, text=True, env=environment(tmp_path)
    )
    assert ended.returncode == 0, ended.stderr
    for asked in (
        *("network an open network", "variable AWS_SECRET_ACCESS_KEY", "variable OPENAI_API_KEY: never passed on"),
        *("host data.example.org:8443, while it runs", "host files.example.org, in its build"),
        "image registry.example/team/base:1",
    ):
        assert asked in ended.stdout


def ask(arguments: list[str], answer: str, env: dict[str, str], cwd: Path) -> tuple[int, str]:
    """Run a command at a terminal; its code, and what it said."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvpe(arguments[0], arguments, env)
    os.write(terminal, f"{answer}\n".encode())
    said = b""
    try:
        while block := os.read(terminal, 4096):
            said += block
    except OSError:
        pass  # how a terminal ends
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


def test_at_a_terminal_it_is_asked_once_for_each_content(asking: Path, tmp_path: Path) -> None:
    (asking / "Dockerfile").write_text("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n")
    script = tmp_path / "consent.py"
    script.write_text(
        "import sys\n"
        "from mleredux.plugin.command import consent, current\n"
        "from mleredux.plugin.agent import Grants\n"
        "agent = current().agent(sys.argv[1])\n"
        "print('GIVEN', consent(current(), agent, Grants(), None))\n"
    )
    program = [sys.executable, str(script), f"repo:{asking}"]
    env = environment(tmp_path)
    code, said = ask(program, "n", env, tmp_path)
    assert code != 0 and "Grant all of this?" in said and "GIVEN (" not in said
    code, said = ask(program, "y", env, tmp_path)
    assert code == 0 and "variables=('AWS_SECRET_ACCESS_KEY',)" in said and "'open'" in said
    again = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert "AWS_SECRET_ACCESS_KEY" in again.stdout and again.stderr == "", "the answer is remembered"
    (asking / "solve.py").write_text("print('changed')\n")
    changed = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert "variables=()" in changed.stdout and "requests:" in changed.stderr, "another content asks again"


@pytest.mark.parametrize(
    ("text", "images"),
    [
        ("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN true\n", []),
        (
            "FROM a/b:1 AS x\nFROM x\nCOPY --from=x / /\nCOPY --from=0 / /\nCOPY --from=evil/image / /\n",
            ["a/b:1", "evil/image"],
        ),
        ("ARG A=evil\nARG B=$A/x\nFROM ${A}/image:${T:-1}\n", ["evil/image:1"]),
        ("FROM a\n# FROM comment\nRUN echo \\\n# comment\n\nFROM not-an-image\nfrom b\n", ["a", "b"]),
        ("FROM --platform=linux/amd64 a@sha256:1\r\nRUN --mount=type=cache,target=/x true\r\n", ["a@sha256:1"]),
        ("FROM a\nRUN --mount=type=bind,from=evil/image,target=/x true\n", ["a", "evil/image"]),
    ],
)
def test_images_of_a_dockerfile_are_found(text: str, images: list[str]) -> None:
    assert images_of(text) == images


@pytest.mark.parametrize(
    "text",
    [
        "FROM $UNKNOWN\n",
        "FROM a\nADD http://169.254.169.254/latest/meta-data /x\n",
        'FROM a\nADD ["https://10.0.0.1/x", "/x"]\n',
        "FROM a\nARG U=http://10.0.0.1\nADD $U /x\n",
        "FROM a\nADD git@host:team/x.git /x\n",
        "FROM a\nRUN --network=host true\n",
        "FROM a\nRUN --security=insecure true\n",
        "FROM a\nRUN --mount=type=secret,id=x true\n",
        "FROM a\nRUN --mount=type=ssh true\n",
        "# escape=`\nFROM a\nRUN x \\\nFROM evil\n",
        "#syntax=evil/frontend\nFROM a\n",
        "FROM a\nONBUILD ADD http://10.0.0.1/ /x\n",
        "FROM a\nRUN <<X\nFROM evil\nX\n",
        "FROM a\nARG I=evil\nCOPY --from=$I / /\n",
    ],
)
@pytest.mark.attack
def test_what_an_engine_would_fetch_by_itself_is_refused(text: str) -> None:
    with pytest.raises(AgentBroken, match="The Dockerfile has"):
        images_of(text)


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "10.0.0.1:80", "a=10.0.0.1", "localhost", "[::1]:80", "http://x", "x/y", "*"]
)
def test_a_manifest_asks_for_hosts_by_name(write_agent: Any, host: str) -> None:
    text = f'[agent]\nid = "x"\ncommand = ["x"]\n[network]\nrun = ["{host}"]\n'
    with pytest.raises(BadManifest, match=r"network\.run"):
        read_manifest(write_agent(**{"mleredux-agent.toml": text}))


def test_a_host_on_the_command_line_is_checked(asking: Path) -> None:
    ended = subprocess.run(
        command("run", "digits", "--agent", "dummy", "--allow-host", "http://x/"), capture_output=True, text=True
    )
    assert ended.returncode == 2 and "'http://x/' is not a host" in ended.stderr and "Traceback" not in ended.stderr
    with pytest.raises(MlereduxError, match="lacks"):
        plan_of(current(), "digits", "dummy", sandbox="process", grants=Grants(hosts=("example.org",)))


def test_a_plan_grants_what_its_arms_name(asking: Path, tmp_path: Path) -> None:
    from mleredux.plugin.experiment import Plan, plan

    arm: dict[str, Any] = {"agent": f"repo:{asking}", "sandbox": "docker", "network": "open"}
    grants = {
        "variables": ["AWS_SECRET_ACCESS_KEY"],
        "build_hosts": ["files.example.org"],
        "images": ["registry.example/*"],
    }

    def cells(**more: Any) -> list[Any]:
        arms = {"plain": {"agent": "dummy", "sandbox": "docker"}, "asking": {**arm, **more}}
        made = Plan.model_validate({"experiment": {"name": "p", "tasks": ["digits"]}, "arms": arms})
        planned = plan(made.request, current(), own_machine=True)
        return [run.grants.model_dump(mode="json", exclude_defaults=True) for run in planned]

    with pytest.raises(NotGranted, match="the variable AWS_SECRET_ACCESS_KEY") as refused:
        cells()
    assert "the arm's `network` and `grants`" in str(refused.value.hint)
    assert cells(grants=grants) == [{}, grants], "no other arm gets it"
    with pytest.raises(NotGranted, match="OPENAI_API_KEY can't be passed"):
        cells(grants={**grants, "variables": ["OPENAI_API_KEY"]})
