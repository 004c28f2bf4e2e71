"""Validation in a container without network: answered from outside, at the address that MLE-bench's agents know."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import mleredux_containers as inside
import pytest
from mleredux._core.protocols import BuildRequest
from mleredux._core.submissions.endpoint import ValidationEndpoint
from mleredux.models import Agent, Build, Column, SubmissionSchema

GOOD, BAD = "id,y\n1,2\n2,3\n", "id,z\n1,2\n2,3\n"
SCRIPT = Path(inside.__file__).parent / "inside" / "validate.sh"


@pytest.fixture
def endpoint(tmp_path):
    """The real endpoint, for submissions with the columns `id` and `y` and two rows."""
    columns = (Column(name="id", role="id", type="integer"), Column(name="y", role="target", type="number"))
    schema = SubmissionSchema(task="digits", task_version="1", columns=columns, rows=2)
    output = tmp_path / "output"
    output.mkdir()
    asked = []
    served = ValidationEndpoint(str(tmp_path), schema, output, asked.append, lambda: 60.0)
    served.asked = asked
    served.start()
    yield served
    served.stop()


ASK = """
import json, sys, time, urllib.error, urllib.request
body = open(sys.argv[1], "rb").read() if len(sys.argv) > 1 else b""
status = 429  # asked too often: a client that sends too little has asked, too
while status == 429:
    try:
        request = urllib.request.Request("http://localhost:5000/validate", data=body, method="POST")
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        answer = error
    status = answer.status
    time.sleep(0.5 if status == 429 else 0)
print(json.dumps([status, json.loads(answer.read())["valid"]]))
"""


def test_the_address_of_mle_bench_answers_without_any_network(make_launch, run, endpoint):
    launch = make_launch("sh", "-c", 'printf \'%s\' "$CSV" > /tmp/mine.csv; python -c "$ASK" /tmp/mine.csv')
    env = {"CSV": GOOD, "ASK": ASK}
    launch = type(launch)(**{**vars(launch), "validate_socket": endpoint.socket, "env": env})
    ended, log = run(launch)
    assert ended.code == 0, log
    assert json.loads(log) == [200, True]
    assert [verdict.valid for verdict in endpoint.asked] == [True]


@pytest.mark.parametrize("command", ["/home/validate_submission.sh", "mleredux-validate"])
@pytest.mark.parametrize(("content", "code"), [(GOOD, 0), (BAD, 1)], ids=["well-formed", "malformed"])
def test_the_commands_say_it_with_their_exit_code(command, content, code, make_launch, run, endpoint):
    launch = make_launch("sh", "-c", f"printf '%s' \"$CSV\" > 'my file.csv'; {command} 'my file.csv'")
    launch = type(launch)(**{**vars(launch), "validate_socket": endpoint.socket, "env": {"CSV": content}})
    ended, log = run(launch)
    assert ended.code == code, log
    assert json.loads(log)["valid"] is (code == 0)


def test_the_commands_say_what_keeps_them_from_asking(make_launch, run):
    asked = "mleredux-validate absent.csv; echo $?; touch it; mleredux-validate it"
    ended, log = run(make_launch("sh", "-c", f"exec 2>&1; {asked}"))  # one stream: two have no order between them
    assert b"The file 'absent.csv' does not exist" in log
    assert b"\n2\n" in log
    assert b"The validation endpoint does not respond" in log
    assert ended.code == 2


@pytest.mark.parametrize(("content", "code"), [(GOOD, 0), (BAD, 1)], ids=["well-formed", "malformed"])
def test_the_command_asks_with_curl_where_there_is_curl(content, code, endpoint, tmp_path):
    if shutil.which("curl") is None:  # not required of a machine; other tests ask the same without it
        pytest.skip("this machine has no curl")
    script = tmp_path / "validate.sh"
    script.write_text(SCRIPT.read_text().replace("http://localhost:5000/validate", endpoint.url))
    submission = tmp_path / 'a "name"; with, signs.csv'
    submission.write_text(content)
    asked = subprocess.run(["sh", str(script), str(submission)], capture_output=True, text=True, timeout=600)
    assert asked.returncode == code, asked.stderr
    assert json.loads(asked.stdout)["valid"] is (code == 0)


BAD_CLIENTS = """
import socket, struct
def client(data, *, reset=False):
    connection = socket.create_connection(("127.0.0.1", 5000))
    connection.sendall(data)
    if reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return connection
for _ in range(30):
    client(b"\\x00\\xff garbage\\r\\n\\r\\n").close()
    client(b"POST /validate HTTP/1.1\\r\\nContent-Length: 1000000\\r\\n\\r\\nshort").close()
    client(b"POST /validate HTTP/1.1\\r\\n", reset=True).close()
idle = [client(b"") for _ in range(50)]
"""


@pytest.mark.attack
def test_bad_clients_do_not_take_the_endpoint_from_good_ones(make_launch, run, endpoint):
    launch = make_launch("python", "-c", BAD_CLIENTS + "\nimport sys; sys.argv=['']\n" + ASK)
    launch = type(launch)(**{**vars(launch), "validate_socket": endpoint.socket})
    (launch.output_dir / "submission.csv").write_text(GOOD)
    endpoint.output_dir = launch.output_dir
    ended, log = run(launch)
    assert ended.code == 0, log
    assert json.loads(log) == [200, True]


def test_the_endpoint_is_found_again_after_it_was_served_anew(make_launch, sandbox, endpoint, wait_for_end):
    wait = "import pathlib, time\nwhile not pathlib.Path('/output/go').exists(): time.sleep(0.05)\n"
    launch = make_launch("python", "-c", wait + "import sys; sys.argv=['']\n" + ASK)
    launch = type(launch)(**{**vars(launch), "validate_socket": endpoint.socket})
    (launch.output_dir / "submission.csv").write_text(GOOD)
    handle = sandbox.start(launch)
    try:
        endpoint.output_dir = launch.output_dir
        endpoint._wake.close()
        endpoint._thread.join()
        for server in endpoint._servers:
            server.server_close()
        endpoint.start()
        (launch.output_dir / "go").touch()
        assert wait_for_end(handle).code == 0
    finally:
        handle.close()
    assert json.loads(launch.log.read_bytes()) == [200, True]


def test_the_forwarder_is_nobodys_child_and_holds_nothing_up(make_launch, run, endpoint):
    program = "import os\ntry: os.wait()\nexcept ChildProcessError: print('no child')"
    launch = make_launch("python", "-c", program)
    launch = type(launch)(**{**vars(launch), "validate_socket": endpoint.socket})
    begun = time.monotonic()
    ended, log = run(launch)
    assert (ended.code, log) == (0, b"no child\n")
    assert time.monotonic() - begun < 90


def test_without_python_the_agent_starts_all_the_same(make_launch, run, endpoint, sandbox, tmp_path):
    context = tmp_path / "context"
    context.mkdir()
    (context / "Dockerfile").write_text("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN rm -f $(which -a python python3)\n")
    agent = Agent(id="no-python", title="No Python", command=("sh",), build=Build(context=context))
    built = sandbox.build(BuildRequest(agent=agent, log=tmp_path / "build.log"))
    launch = make_launch("sh", "-c", "command -v python3 || echo works; echo x > f; mleredux-validate f 2>&1; echo $?")
    launch = type(launch)(**{**vars(launch), "validate_socket": endpoint.socket, "built": built})
    _, log = run(launch)
    sentence = b"The image has neither curl nor python3 to send the file to http://localhost:5000/validate."
    assert log == b"works\n%b\n2\n" % sentence
