"""Bundles: made from real runs, checked elsewhere, and attacked."""

from __future__ import annotations

import base64
import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mleredux
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from mleredux._core.cli.root import root
from mleredux._core.data.installation import installation_salt
from mleredux._core.store import Run
from mleredux.errors import MlereduxError
from mleredux_audit_bundle import verification
from mleredux_audit_bundle.archive import ENVELOPE, KEY, PAYLOAD_TYPE, write_bundle
from mleredux_audit_bundle.keys import installation_key, key_path, public_key, public_pem
from mleredux_audit_bundle.verification import verify_bundle
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with prepared data, two graded runs and a bundle of them."""
    home = tmp_path_factory.mktemp("bundle")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        runs = [
            mleredux.run("wine", agent="dummy", seed=seed, runs_dir=home / "runs", data_dir=home / "data")
            for seed in (0, 1)
        ]
        signer = installation_key()
        write_bundle([Run(Path(run.path)) for run in runs], signer, home / "good.zip")
        write_bundle([Run(Path(run.path)) for run in runs], signer, home / "hashes.zip", submissions=False)
    return home


def verify(place: Path, name: str, *more: str) -> tuple[int, dict[str, Any]]:
    """Run `mleredux verify-bundle --json` as on another machine: with other configuration and no runs."""
    env = {"XDG_CONFIG_HOME": str(place / "elsewhere"), "XDG_DATA_HOME": str(place / "elsewhere")}
    ended = CliRunner().invoke(root, ["verify", str(place / name), "--json", *more], env=env)
    return ended.exit_code, json.loads(ended.stdout)


def changed(place: Path, name: str, change: Callable[[dict[str, bytes]], None]) -> str:
    """Write a copy of the good bundle with changed files; return its name."""
    with zipfile.ZipFile(place / "good.zip") as archive:
        files = {each: archive.read(each) for each in archive.namelist()}
    change(files)
    with zipfile.ZipFile(place / name, "w") as archive:
        for each, content in files.items():
            archive.writestr(each, content)
    return name


def test_a_bundle_is_verified_and_graded_again_on_another_machine(place: Path) -> None:
    code, found = verify(place, "good.zip", "--answers", str(place / "data"))
    assert (code, found["verified"], found["problems"]) == (0, True, [])
    assert len(found["runs"]) == 2
    for run in found["runs"]:
        assert run["reproduced"] is True
        assert run["score"] == run["claimed_score"]
        assert run["medal"] == run["claimed_medal"]


def test_the_statement_names_versions_images_ledger_and_no_secret_key(place: Path) -> None:
    with zipfile.ZipFile(place / "good.zip") as archive:
        statement = json.loads(base64.b64decode(json.loads(archive.read(ENVELOPE))["payload"]))
        assert not any(b"PRIVATE KEY" in archive.read(name) for name in archive.namelist())
    run = statement["predicate"]["runs"][0]
    assert run["used"]["image"] and run["used"]["packages"]["mleredux"] and run["used"]["task_data"]
    assert run["report"]["ledger"]["isolated"] is False
    assert run["submission"]["digest"]["sha256"]
    assert (place / "config" / "mleredux" / "signing-key.pem").stat().st_mode & 0o077 == 0


def test_without_submissions_hashes_are_checked_and_no_score_is_confirmed(place: Path) -> None:
    assert verify(place, "hashes.zip")[0] == 0
    code, found = verify(place, "hashes.zip", "--answers", str(place / "data"))
    assert code == 3
    assert all("did not confirm its score" in run["problems"][0] for run in found["runs"])
    assert [run["reproduced"] for run in found["runs"]] == [None, None]
    assert all("only its hash" in run["notes"][0] for run in found["runs"])


def a_file(files: dict[str, bytes], end: str) -> str:
    return next(name for name in files if name.endswith(end))


def edit_report(files: dict[str, bytes]) -> None:
    name = a_file(files, "report.json")
    files[name] = files[name].replace(b'"gold_medal":false', b'"gold_medal":true') + b" "


def edit_submission(files: dict[str, bytes]) -> None:
    files[a_file(files, ".csv")] += b"\n"


def edit_statement(files: dict[str, bytes]) -> None:
    envelope = json.loads(files[ENVELOPE])
    statement = json.loads(base64.b64decode(envelope["payload"]))
    statement["predicate"]["runs"][0]["report"]["score"] = 1.0
    envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    files[ENVELOPE] = json.dumps(envelope).encode()


def remove_report(files: dict[str, bytes]) -> None:
    del files[a_file(files, "report.json")]


def add_file(files: dict[str, bytes]) -> None:
    files["../../etc/cron.d/x"] = b"planted"


def other_key(files: dict[str, bytes]) -> None:
    files[KEY] = public_pem(Ed25519PrivateKey.generate())


def no_signatures(files: dict[str, bytes]) -> None:
    files[ENVELOPE] = json.dumps({**json.loads(files[ENVELOPE]), "signatures": []}).encode()


def nonsense(files: dict[str, bytes]) -> None:
    files[ENVELOPE] = b"[" * 100_000


ATTACKS = [edit_report, edit_submission, edit_statement, remove_report, add_file, other_key, no_signatures, nonsense]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.attack
def test_a_changed_bundle_is_refused_with_a_sentence(place: Path, attack: Callable[[dict[str, bytes]], None]) -> None:
    code, found = verify(place, changed(place, f"{attack.__name__}.zip", attack))
    assert (code, found["verified"]) == (3, False)
    assert found["problems"]


@pytest.mark.attack
def test_a_bundle_signed_anew_by_another_is_told_by_the_key(place: Path) -> None:
    runs = [Run(path.parent) for path in sorted((place / "runs").glob("*/run.json"))]
    forger = Ed25519PrivateKey.generate()
    write_bundle(runs, forger, place / "forged.zip")
    with zipfile.ZipFile(place / "good.zip") as archive:
        (place / "key.pem").write_bytes(archive.read(KEY))
    assert verify(place, "good.zip", "--key", str(place / "key.pem"))[1]["trusted"] is True
    code, found = verify(place, "forged.zip", "--key", str(place / "key.pem"))
    assert (code, found["trusted"]) == (3, False)
    assert verify(place, "forged.zip")[1]["trusted"] is None


def lie(place: Path, name: str, **claims: Any) -> str:
    """Write a bundle of a run whose report has other fields, signed by the liar; return its name."""
    (source, *_) = sorted((place / "runs").glob("*/run.json"))
    report = place / f"{name}.d" / source.parent.name / "report.json"
    shutil.copytree(source.parent, report.parent)
    report.write_text(json.dumps({**json.loads(report.read_text()), **claims}))
    write_bundle([Run(report.parent)], Ed25519PrivateKey.generate(), place / f"{name}.zip")
    return f"{name}.zip"


LIES: dict[str, dict[str, Any]] = {
    "score": {"score": 0.99999},
    "no score": {"score": None, "valid_submission": False},
    "medal": {"gold_medal": True, "any_medal": True},
    "any medal": {"any_medal": True},
    "bronze": {"bronze_medal": True},
    "median": {"above_median": True},
    "thresholds": {"gold_threshold": 0.1, "silver_threshold": 0.1, "bronze_threshold": 0.1},
    "one threshold": {"median_threshold": 0.0},
    "percentile": {"percentile": 99.0},
    "teams": {"teams": 1},
    "direction": {"is_lower_better": False},
    "metric": {"metric": "rmse"},
    "withheld": {
        "verdict": {"status": "tainted", "withheld": {"gold_medal": True, "any_medal": True}},
    },
}


@pytest.mark.parametrize(
    "claims",
    [
        {"task_version": "0"},
        {"task": "no-such-task"},
        {"score": 1.0, "gold_medal": True},
        {"score": None, "valid_submission": False, "gold_medal": True, "any_medal": True},
        {"score": None, "verdict": {"status": "tainted", "withheld": {"silver_medal": True, "any_medal": True}}},
    ],
)
@pytest.mark.attack
def test_a_claim_that_can_t_be_graded_is_not_confirmed(place: Path, claims: dict[str, Any]) -> None:
    (source, *_) = sorted((place / "runs").glob("*/run.json"))
    name = f"ungraded-{len(list(place.iterdir()))}"
    folder = place / f"{name}.d" / source.parent.name
    shutil.copytree(source.parent, folder)
    for file in ("run.json", "report.json"):
        content = json.loads((folder / file).read_text())
        for part in (content, content.get("spec", {})):
            part.update((key, claims[key]) for key in claims if key in part)
        (folder / file).write_text(json.dumps(content))
    write_bundle([Run(folder)], Ed25519PrivateKey.generate(), place / f"{name}.zip", submissions="score" not in claims)
    code, found = verify(place, f"{name}.zip", "--answers", str(place / "data"))
    [run] = found["runs"]
    assert (code, run["reproduced"], run["score"], run["medal"]) == (3, None, None, None)


@pytest.mark.parametrize("kind", LIES)
@pytest.mark.attack
def test_what_is_claimed_and_signed_is_found_by_grading(place: Path, kind: str) -> None:
    name = lie(place, kind.replace(" ", "-"), **LIES[kind])
    code, found = verify(place, name)
    [run] = found["runs"]
    assert code == 0, "the signature is the liar's own"
    assert (run["score"], run["medal"], run["percentile"], run["reproduced"]) == (None, None, None, None)
    code, found = verify(place, name, "--answers", str(place / "data"))
    [run] = found["runs"]
    assert (code, run["reproduced"], run["medal"]) == (3, False, None)
    assert " instead of " in run["problems"][0]
    arguments = ["verify", str(place / name), "--answers", str(place / "data")]
    shown = CliRunner(env={"COLUMNS": "160"}).invoke(root, arguments).stdout
    assert "not verified" in shown and "CLAIMED SCORE" in shown


@pytest.mark.attack
def test_a_statement_of_any_form_is_a_sentence(place: Path) -> None:
    for number, told in enumerate(
        [
            {},
            {"id": 1},
            {"id": "a", "report": []},
            {"id": "a", "report": {"score": "x"}},
            None,
            {"submission": {"name": 3}},
        ]
    ):
        whole = {"id": "a", "task": "wine", "agent": "b", "status": "done", "report": None, "submission": None}
        runs = [{**whole, **told}] if told else told
        name = changed(place, f"odd{number}.zip", lambda files, runs=runs: sign(files, {"runs": runs}))  # type: ignore[misc]
        code, found = verify(place, name, "--answers", str(place / "data"))
        assert code == 3 and found["problems"], told


def sign(files: dict[str, bytes], predicate: dict[str, Any]) -> None:
    """Replace the predicate, and sign with a new key."""
    key = Ed25519PrivateKey.generate()
    statement = json.loads(base64.b64decode(json.loads(files[ENVELOPE])["payload"]))
    payload = json.dumps({**statement, "predicate": predicate}).encode()
    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(key))
    files |= {ENVELOPE: json.dumps(envelope.to_dict()).encode(), KEY: public_pem(key)}


def twice(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*runs, runs[0]]


def renamed(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*runs, {**runs[0], "id": f"{runs[0]['id']}-again"}]


def exchanged(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first, second = (run["submission"] for run in runs[:2])
    return [{**run, "submission": other} for run, other in zip(runs, (second, first), strict=False)]


def none(_runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return []


@pytest.mark.parametrize("inflate", [twice, renamed, exchanged, none], ids=lambda inflate: inflate.__name__)
@pytest.mark.attack
def test_each_run_counts_once_and_by_its_own_submission(place: Path, inflate: Callable[[Any], Any]) -> None:
    def edit(files: dict[str, bytes]) -> None:
        predicate = json.loads(base64.b64decode(json.loads(files[ENVELOPE])["payload"]))["predicate"]
        sign(files, {**predicate, "runs": inflate(predicate["runs"])})

    code, checked = verify(place, changed(place, f"{inflate.__name__}.zip", edit), "--answers", str(place / "data"))
    sentences = [*checked["problems"], *(problem for run in checked["runs"] for problem in run["problems"])]
    assert code == 3 and not checked["verified"]
    assert any("no run, or the same run twice" in one or "submission is that of another" in one for one in sentences)


CONTROLS = "\x1b[2Jx\x1b]0;t\x07\x9b31m\r\n\u202e"


@pytest.mark.attack
def test_no_name_in_an_archive_reaches_the_terminal_as_it_is(place: Path) -> None:
    told = {"id": CONTROLS, "task": CONTROLS, "agent": CONTROLS, "status": CONTROLS, "report": None}
    runs = [{**told, "submission": {"name": CONTROLS, "digest": {"sha256": CONTROLS}}}]

    def hostile(files: dict[str, bytes]) -> None:
        files[CONTROLS] = b""
        sign(files, {"created_at": CONTROLS, "runs": runs})

    name = changed(place, "controls.zip", hostile)
    for more in ([], ["--json"], ["--answers", str(place / "data")]):
        shown = CliRunner().invoke(root, ["verify", str(place / name), *more])
        assert shown.exit_code == 3
        rest = {char for char in shown.output if not char.isprintable()} - {"\n"}
        assert not rest, more


@pytest.mark.attack
def test_nothing_is_unpacked_that_is_too_large(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "MOST_SUBMISSION", 100)
    _, found = verify(place, "good.zip", "--answers", str(place / "data"))
    assert all("is too large to be unpacked" in run["notes"][0] for run in found["runs"])
    assert [run["reproduced"] for run in found["runs"]] == [None, None]
    monkeypatch.setattr(verification, "MOST_BYTES", 100)
    with pytest.raises(MlereduxError, match="unpacks to more than"):
        verify_bundle(place / "good.zip")


@pytest.mark.attack
def test_a_file_is_read_no_further_than_its_declared_size(place: Path) -> None:
    """Sizes in an archive's directory are what is trusted: a longer stream is damage."""
    name = changed(place, "long.zip", lambda files: None)
    data = (place / name).read_bytes()
    with zipfile.ZipFile(place / name) as archive:
        entry = next(entry for entry in archive.infolist() if entry.filename.endswith(".csv"))
    at = data.rindex(entry.filename.encode()) - 46 + 24
    assert int.from_bytes(data[at : at + 4], "little") == entry.file_size
    (place / name).write_bytes(data[:at] + (5).to_bytes(4, "little") + data[at + 4 :])
    with pytest.raises(MlereduxError, match="is not a bundle"):
        verify_bundle(place / name)


@pytest.mark.attack
def test_damage_within_a_compressed_file_is_a_sentence(place: Path) -> None:
    data = bytearray((place / "good.zip").read_bytes())
    with zipfile.ZipFile(place / "good.zip") as archive:
        entry = next(entry for entry in archive.infolist() if entry.filename.endswith("report.json"))
    at = entry.header_offset + 30 + len(entry.filename)
    data[at : at + 20] = b"\xff" * 20
    (place / "damaged.zip").write_bytes(data)
    with pytest.raises(MlereduxError, match="is not a bundle: Error -3 while decompressing"):
        verify_bundle(place / "damaged.zip")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.attack
def test_methods_of_compression_that_may_take_much_memory_are_refused(place: Path, method: int) -> None:
    with zipfile.ZipFile(place / "good.zip") as archive, zipfile.ZipFile(place / "method.zip", "w") as packed:
        for name in archive.namelist():
            packed.writestr(name, archive.read(name), method)
    with pytest.raises(MlereduxError, match="not compressed with deflate"):
        verify_bundle(place / "method.zip")


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x05\x06" + bytes(18)])
@pytest.mark.attack
def test_what_is_no_bundle_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(MlereduxError, match=r"is not a bundle"):
        verify_bundle(tmp_path / "x.zip")


def test_a_run_that_goes_on_is_not_bundled(place: Path, tmp_path: Path) -> None:
    (source, *_) = sorted((place / "runs").glob("*/run.json"))
    shutil.copytree(source.parent, tmp_path / source.parent.name)
    events = tmp_path / source.parent.name / "events.jsonl"
    events.write_text("".join(io.StringIO(events.read_text()).readlines()[:6]))
    with pytest.raises(MlereduxError, match=r"is running"):
        write_bundle([Run(events.parent)], Ed25519PrivateKey.generate(), tmp_path / "b.zip")
    assert [path.name for path in tmp_path.iterdir()] == [source.parent.name]


def test_a_key_of_another_kind_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    key_path().parent.mkdir()
    key_path().write_bytes(CryptoSigner.generate_rsa().private_bytes)
    with pytest.raises(MlereduxError, match="not an ed25519 key"):
        installation_key()
    with pytest.raises(MlereduxError, match="not a public key"):
        public_key(b"nonsense", "x.pem")


@pytest.mark.parametrize(("name", "load"), [("salt", installation_salt), ("signing-key.pem", installation_key)])
@pytest.mark.parametrize("content", ["folder", "no folder", b"", b"xyz", b"\xff\xfe\x00"])
def test_a_secret_that_is_unusable_is_refused_in_one_sentence(
    name: str, load: Callable[[], object], content: str | bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "mleredux" / name
    if content == "no folder":
        path.parent.write_text("")
    else:
        path.parent.mkdir()
        path.write_bytes(content) if isinstance(content, bytes) else path.mkdir()
    with pytest.raises(MlereduxError) as refused:
        load()
    assert str(path) in refused.value.message and "Errno" not in refused.value.message and refused.value.hint
