"""An image made for MLE-bench runs unmodified."""

from __future__ import annotations

import json

import pytest
from mleredux._core.protocols import BuildRequest
from mleredux._core.submissions.endpoint import ValidationEndpoint
from mleredux.models import Agent, Build, Column, SubmissionSchema

# As MLE-bench's own agents are: folders by build arguments, files of root, a home that is opened at each start.
DOCKERFILE = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN useradd -m nonroot && mkdir -p /home/submission && echo instructions of the image > /home/instructions.txt
COPY entrypoint.sh /entrypoint.sh
ENTRYPOINT ["/entrypoint.sh"]
WORKDIR /home
ARG SUBMISSION_DIR
ENV SUBMISSION_DIR=${SUBMISSION_DIR}
ARG LOGS_DIR
ENV LOGS_DIR=${LOGS_DIR}
ARG CODE_DIR
ENV CODE_DIR=${CODE_DIR}
ARG AGENT_DIR
ENV AGENT_DIR=${AGENT_DIR}
RUN mkdir -p ${LOGS_DIR} ${CODE_DIR} ${AGENT_DIR} && chmod 755 ${AGENT_DIR}
COPY . ${AGENT_DIR}
"""
START = """\
#!/bin/bash
set -eu
cd ${AGENT_DIR}
mkdir -p workspaces/exp
cat /home/instructions.txt /home/data/description.md > full_instructions.txt
cat full_instructions.txt
echo "competition $COMPETITION_ID, $(wc -l < /home/data/train.csv) lines, $(cat /home/data/images/1.txt)"
printf 'id,y\\n1,2\\n' > ${SUBMISSION_DIR}/submission.csv
cp start.sh ${CODE_DIR}/solution.sh
echo done > ${LOGS_DIR}/agent.log
/home/validate_submission.sh ${SUBMISSION_DIR}/submission.csv
python - <<'PROGRAM'
import urllib.request
print(urllib.request.urlopen("http://localhost:5000/health").read())
PROGRAM
"""


@pytest.fixture
def image(base, program, tmp_path):
    """An image as its authors would make it; the agent names it as a ready image, and no command."""
    context = tmp_path / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(DOCKERFILE)
    (context / "start.sh").write_text(START)
    (context / "entrypoint.sh").write_text("#!/bin/bash\nexec sleep infinity\n")
    folders = {f"{name.upper()}_DIR": f"/home/{name}" for name in ("submission", "logs", "code", "agent")}
    agent = Agent(id="mle-bench-agent", title="From MLE-bench", command=())
    arguments = [f"--build-arg={name}={value}" for name, value in {"BASE_IMAGE": base, **folders}.items()]
    program("build", "--tag", "mleredux/test-of-mle-bench:1", *arguments, str(context))
    return agent.model_copy(update={"build": Build(image="mleredux/test-of-mle-bench:1")})


def test_an_image_made_for_mle_bench_runs_unmodified(image, sandbox, make_launch, run, tmp_path):
    request = BuildRequest(agent=image, log=tmp_path / "build.log")
    built = sandbox.build(request)
    assert sandbox.build(request) == type(built)(built.identity, built.reference, cached=True)

    launch = make_launch()
    columns = (Column(name="id", role="id", type="integer"), Column(name="y", role="target", type="number"))
    schema = SubmissionSchema(task="digits", task_version="1", columns=columns, rows=1)
    endpoint = ValidationEndpoint(str(tmp_path), schema, launch.output_dir, lambda _verdict: None, lambda: 60.0)
    endpoint.start()
    try:
        changes = {"agent": image, "built": built, "command": image.command, "validate_socket": endpoint.socket}
        ended, log = run(type(launch)(**{**vars(launch), **changes}))
    finally:
        endpoint.stop()
    assert ended.code == 0, log.decode()
    lines = log.decode().splitlines()
    assert lines[:3] == ["How to submit it.", "What to predict.", "competition digits, 2 lines, an image"]
    assert json.loads(lines[3])["valid"] is True
    assert "running" in lines[4]
    assert (launch.output_dir / "submission.csv").read_text() == "id,y\n1,2\n"
    assert (launch.output_dir / "code" / "solution.sh").read_text() == START
    assert (launch.output_dir / "logs" / "agent.log").read_text() == "done\n"
    assert not (launch.data_dir / "description.md").exists(), "the data's own folder is left alone"


def test_the_tasks_own_description_hides_the_datas(make_launch, run):
    launch = make_launch("cat", "/home/data/description.md", "/task/data/description.md", "/task/description.md")
    (launch.data_dir / "description.md").write_text("The story with all its names.\n")
    assert run(launch)[1] == b"What to predict.\n" * 3
