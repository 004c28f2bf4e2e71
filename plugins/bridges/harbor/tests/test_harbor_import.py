"""Tasks of Harbor on the local engine: the agent works in the task's image, and only the verifier gives the reward."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import mleredux
import pytest
from mleredux import MlereduxError, Run
from mleredux_bridge_harbor.imported import folder_of, import_folder, read_task

pytestmark = pytest.mark.docker

CONFIG = """\
schema_version = "1.4"
artifacts = ["/app/sum.txt"]

[task]
name = "mleredux/sum"
description = "Adds up numbers."

[environment]
memory_mb = 256
env = {{ UNIT = "metre $5" }}

[agent]
timeout_sec = 120.0

[verifier]
environment_mode = "{mode}"
timeout_sec = 60.0
env = {{ EXPECTED = "42" }}
"""
SHARED = """\
#!/bin/bash
# The changes of the agent are here, deletions too; its own reward is not.
[ ! -e spare.txt ] && [ -e /var/tmp/noted ] && [ "$UNIT" = 'metre $5' ] && [ ! -e /logs/verifier/reward.txt ] || exit 1
(echo > /dev/tcp/1.1.1.1/53) 2> /dev/null && exit 1
[ "$(cat sum.txt)" = "$EXPECTED" ] && echo 0.75 > /logs/verifier/reward.txt
"""
SEPARATE = """\
#!/bin/bash
[ ! -e /app/numbers.txt ] && [ "$(cat /app/sum.txt)" = "$(cat /tests/expected.txt)" ] && right=1 || right=0
echo "{\\"reward\\": $right, \\"speed\\": 3}" > /logs/verifier/reward.json
"""
SOLVE = """\
#!/bin/bash
ls -A /tests | grep -q . && exit 1
[ "$(stat -c %a /logs/verifier)" = 777 ] && echo 1 > /logs/verifier/reward.txt
awk '{ total += $1 } END { print total }' numbers.txt > sum.txt
rm spare.txt
touch /var/tmp/noted
"""


def directory(folder: Path, base: str, *, mode: str = "shared", solve: str = SOLVE) -> Path:
    """A miniature task directory in the shape of public ones."""
    for name in ("environment", "tests", "solution"):
        (folder / name).mkdir(parents=True)
    (folder / "task.toml").write_text(CONFIG.format(mode=mode))
    (folder / "instruction.md").write_text("Write the sum of numbers.txt to sum.txt.\n")
    (folder / "environment" / "Dockerfile").write_text(f"FROM {base}\nWORKDIR /app\nCOPY *.txt /app/\n")
    (folder / "environment" / "numbers.txt").write_text("20\n22\n")
    (folder / "environment" / "spare.txt").write_text("x\n")
    (folder / "tests" / "test.sh").write_text(SHARED if mode == "shared" else SEPARATE)
    if mode == "separate":
        (folder / "tests" / "expected.txt").write_text("42\n")
        (folder / "tests" / "Dockerfile").write_text(f"FROM {base}\nWORKDIR /tests\nCOPY . /tests/\nRUN chmod 700 .\n")
    (folder / "solution" / "solve.sh").write_text(solve)
    return folder


def solved(folder: Path, home: Path) -> Run:
    return mleredux.run(f"harbor:{folder}", agent="harbor-oracle", runs_dir=home / "runs", data_dir=home / "data")


def test_the_solution_gets_the_reward_of_the_verifier_alone(tmp_path: Path, docker_base_image: str) -> None:
    run = solved(directory(tmp_path / "sum", docker_base_image), tmp_path)
    report = run.report
    assert report is not None and report.valid_submission, (run.message, run.agent_log.read_text())
    assert (report.score, report.metric, str(report.verdict.status)) == (0.75, "reward", "tainted")
    assert (
        run.spec.limits.memory_mb == 256 and run.spec.limits.time_limit == 120 and run.spec.task.startswith("harbor.")
    )
    shown = "".join(path.read_text(errors="replace") for path in (run.path / "task").rglob("*") if path.is_file())
    assert "Write the sum" in shown and "EXPECTED" not in shown and not list(run.path.rglob("test.sh"))
    forged = tmp_path / "reward.json"
    forged.write_text(
        json.dumps({**json.loads((run.output_dir / "reward.json").read_text()), "rewards": {"reward": 1.0}})
    )
    graded = mleredux.grade(forged, run.spec.task, data_dir=tmp_path / "data")
    assert not graded.valid_submission and "verifier writes the reward" in (graded.message or "")


def test_a_separate_verifier_gets_the_artifacts_alone(tmp_path: Path, docker_base_image: str) -> None:
    report = solved(directory(tmp_path / "sum", docker_base_image, mode="separate"), tmp_path).report
    assert report is not None and report.score == 1.0, report
    assert report.details == {"rewards": {"reward": 1.0, "speed": 3.0}}


def test_what_agents_leave_is_not_trusted(tmp_path: Path, docker_base_image: str) -> None:
    solve = "rm -rf /app/*; ln -s /etc/passwd /output/reward.json; mkfifo hang /output/hang; ln -s / root"
    run = solved(directory(tmp_path / "sum", docker_base_image, solve=solve), tmp_path)
    assert run.report is not None and not run.report.valid_submission
    assert run.report.message == "The verifier wrote no reward."
    assert not (run.output_dir / "reward.json").is_symlink()


def test_a_verifier_that_prints_much_is_cut_short_and_several_rewards_are_kept(
    tmp_path: Path, docker_base_image: str
) -> None:
    folder = directory(tmp_path / "sum", docker_base_image)
    loud = "yes 'a line of a verifier' | head -c 50000000; yes '' | head -n 1000000 >&2; sleep 300 &\n"
    script = loud + 'echo \'{"speed": 3, "accuracy": 0.5}\' > /logs/verifier/reward.json\n'
    (folder / "tests" / "test.sh").write_text(script)
    began = time.monotonic()
    run = solved(folder, tmp_path)
    assert run.report is not None and run.report.score == 1.75, run.report
    assert run.report.details == {"rewards": {"speed": 3.0, "accuracy": 0.5}}
    log = (run.path / ".control" / "verifier.log").read_bytes()
    assert b"a line of a verifier" in log and len(log) < 1 << 20
    assert time.monotonic() - began < 150


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('environment.memory_mb = "lots"', "environment.memory_mb"),
        ("environment.cpus = -1", "environment.cpus"),
        ("environment.cpus = nan", "environment.cpus"),
        ('environment.build_timeout_sec = "10m"', "environment.build_timeout_sec"),
        ("agent.timeout_sec = 0", "agent.timeout_sec"),
        ("agent.timeout_sec = [1]", "agent.timeout_sec"),
        ("verifier.timeout_sec = inf", "verifier.timeout_sec"),
        ('verifier = "quick"', "verifier"),
        ("environment.env = { A = [1] }", "environment.env.A"),
        ("artifacts = 3", "artifacts"),
        ('artifacts = [{ destination = "sum.txt" }]', "artifacts"),
    ],
)
def test_numbers_that_are_none_are_refused_in_a_sentence(tmp_path: Path, line: str, place: str) -> None:
    task = directory(tmp_path / "sum", "debian:13")
    (task / "task.toml").write_text(f'schema_version = "1.4"\n{line}\n')
    with pytest.raises(MlereduxError, match=f"The task.toml has no valid {place}") as told:
        import_folder(task)
    assert str(told.value).count("\n") == 0


@pytest.mark.parametrize("name", ["environment/Dockerfile", "tests/Dockerfile", "tests/test.sh", "instruction.md"])
def test_files_in_other_encodings_are_kept(tmp_path: Path, name: str) -> None:
    task = directory(tmp_path / "sum", "debian:13", mode="separate")
    content = (task / name).read_bytes() + "# café".encode("latin-1")
    (task / name).write_bytes(content)
    copy = folder_of(import_folder(task))
    assert (copy / name).read_bytes() == content
    if name.endswith("Dockerfile"):
        assert (copy / name).with_name(".harbor.Dockerfile").read_bytes().startswith(content)


def test_what_is_not_supported_is_refused(tmp_path: Path) -> None:
    task = directory(tmp_path / "sum", "debian:13")
    first = import_folder(task)
    assert first == import_folder(task) and read_task(first).title == "Adds up numbers."
    (task / "instruction.md").write_text("Other text.\n")
    assert import_folder(task) != first
    cases = {
        "requires several steps": ("task.toml", '[[steps]]\nname = "one"\n'),
        "variables of this machine": ("task.toml", 'verifier.env = { KEY = "${API_KEY}" }\n'),
        "Docker Compose": ("environment/docker-compose.yaml", "services: {}\n"),
        "GPUs": ("task.toml", "environment.gpus = 1\n"),
    }
    for number, (told, (name, content)) in enumerate(cases.items()):
        copy = tmp_path / f"case-{number}"
        shutil.copytree(task, copy)
        (copy / name).write_text(content)
        with pytest.raises(MlereduxError, match=told):
            import_folder(copy)
    (task / "tests" / "linked").symlink_to("/etc/passwd")
    with pytest.raises(MlereduxError, match="is a link"):
        import_folder(task)
