"""The toy agents: name → (code, further fields)."""

from __future__ import annotations

from typing import Any

COPY = """\
import os, shutil, sys, time, signal
shutil.copy(os.environ['MLEREDUX_DATA_DIR'] + '/sample_submission.csv', os.environ['MLEREDUX_SUBMISSION'])
"""

AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "copy": (COPY, {}),
    "idle": ("pass", {}),
    "environment": (COPY + "print(*(f'{name}={value}' for name, value in os.environ.items()), sep='\\n')", {}),
    "sleeper": (COPY + "print('ready', flush=True); time.sleep(120)", {}),
    "stubborn": (
        COPY + "signal.signal(15, signal.SIG_IGN); print('ready', flush=True)\nwhile True: time.sleep(60)",
        {},
    ),
    "polite": (
        COPY + "signal.signal(15, lambda *_: (open('logs/bye', 'w').close(), sys.exit(0)))\n"
        "print('ready', flush=True)\nwhile True: time.sleep(60)",
        {},
    ),
    "silent": (COPY + "os.close(1); os.close(2); os.close(0)", {}),
    "worker": (COPY + "end = time.time() + 1.6\nwhile time.time() < end: pass", {}),
    "steals": (
        COPY + "shutil.copyfile(os.environ['MLEREDUX_DATA_DIR'] + '/../../../../data/toy/prepared/private/answers.csv',"
        " os.environ['MLEREDUX_OUTPUT_DIR'] + '/stolen.csv')",
        {},
    ),
    "copies": (
        COPY + "shutil.copyfile(os.environ['MLEREDUX_DATA_DIR'] + '/../private/answers.csv', 'submission.csv')",
        {},
    ),
    "crash": ("raise SystemExit(7)", {}),
    "hog": ("held = []\nwhile True: held.append(b'x' * 10**7)", {"limits": {"memory_mb": 200}}),
    "fill": ("with open('big', 'wb') as f:\n  while True: f.write(b'x' * 10**6)", {"limits": {"disk_mb": 40}}),
    "fill-slowly": (
        "import time\nfor i in range(10**6):\n  open(f'part{i}', 'wb').write(b'x' * 10**6); time.sleep(0.002)",
        {"limits": {"disk_mb": 40}},
    ),
    "trickle": (
        "import time\nfor i in range(10**6):\n  open(f'part{i}', 'wb').write(b'x' * 10**6); time.sleep(0.03)",
        {"limits": {"disk_mb": 500}},
    ),
    "fill-and-give-up": (
        "import sys\ntry:\n  with open('big', 'wb') as f:\n    while True: f.write(b'x' * 10**6)\n"
        "except OSError: sys.exit(9)",
        {"limits": {"disk_mb": 40}},
    ),
    "chatter": (
        "import sys\nwhile True: sys.stdout.buffer.write(b'\\xff\\x00 noise ' * 10**5)",
        {"limits": {"disk_mb": 40}},
    ),
    "forks": (
        "import os, time\nfor i in range(60):\n  if os.fork() == 0: time.sleep(60); os._exit(0)\n"
        "print('ready', flush=True)\ntime.sleep(60)",
        {"limits": {"processes": 20}},
    ),
    "shares-memory": (
        COPY + "held = bytearray(b'x') * (300 << 20)\nend = time.time() + 3\n"
        "while time.time() < end:\n"
        "  for i in range(6):\n    if os.fork() == 0: time.sleep(0.3); os._exit(0)\n"
        "  for i in range(6): os.wait()",
        {"limits": {"memory_mb": 512}},
    ),
    "takes-apart": (
        "import os, time\n"
        "for i in range(6):\n  if os.fork() == 0: held = bytearray(b'x') * (150 << 20); time.sleep(60)\n"
        "time.sleep(60)",
        {"limits": {"memory_mb": 512}},
    ),
    "daemon": (
        COPY + "if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    os.environ.clear()\n"
        "    os.execve('/bin/sleep', ['sleep', '611'], {})\n  os._exit(0)\ntime.sleep(0.2)",
        {},
    ),
    "parricide": (
        COPY + "if os.fork() == 0: os.setsid(); time.sleep(613)\nos.kill(os.getppid(), 9); time.sleep(617)",
        {},
    ),
    "hydra": (
        "import os, time\nopen('heads', 'w').close()\nend = time.time() + 240\n"
        "for i in range(6):\n  if os.fork() == 0: break\nelse: time.sleep(240)\n"
        "while time.time() < end:\n  if os.fork() == 0: continue\n  else: time.sleep(0.02); os._exit(0)",
        {},
    ),
    "hydra-that-stops-its-launcher": (
        "import os, time; launcher = os.getppid()\nopen('heads', 'w').close()\nend = time.time() + 240\n"
        "for i in range(6):\n  if os.fork() == 0: break\nelse: time.sleep(240)\n"
        "while time.time() < end:\n  os.kill(launcher, 19)\n"
        "  if os.fork() == 0: continue\n  else: time.sleep(0.02); os._exit(0)",
        {},
    ),
    "hydra-of-many-groups": (
        "import os, time\nopen('heads', 'w').close()\nend = time.time() + 60\n"
        "if os.fork(): time.sleep(60)\n"
        "while time.time() < end:\n  if os.fork() == 0: os.setpgid(0, 0)\n  else: time.sleep(0.02); os._exit(0)",
        {},
    ),
    "versions": (
        COPY + "for i in range(3):\n  time.sleep(2.4)\n"
        "  with open(os.environ['MLEREDUX_SUBMISSION'], 'w') as f:\n"
        "    f.write('id,y\\n' + ''.join(f'{k},{i}\\n' for k in range(60, 100)))",
        {},
    ),
    "counts": (COPY + "open('count', 'a').write('x'); time.sleep(float(os.environ.get('PAUSE', '0')))", {}),
    "tells": (
        COPY + "secret = os.environ['TOY_SECRET']; print(secret)\n"
        "with open('notes.bin', 'wb') as f: f.write(b'\\0' + secret.encode() + b'\\0')\n"
        "open('n' * 250, 'w').write('key ' + secret); os.link('notes.bin', 'linked')\n"
        "os.symlink('notes.bin', 'link')",
        {"secrets": ("TOY_SECRET",)},
    ),
    "spoils-data": (COPY + "open(os.environ['MLEREDUX_DATA_DIR'] + '/train.csv', 'a').write('1,2,3\\n')", {}),
    "deep": (
        COPY + "for i in range(1200): os.mkdir('d'); os.chdir('d')\n"
        "os.chdir(os.environ['MLEREDUX_SCRATCH_DIR'])\nfor i in range(1200): os.mkdir('d'); os.chdir('d')",
        {},
    ),
    "link": ("import os; os.symlink('/etc/hostname', os.environ['MLEREDUX_SUBMISSION'])", {}),
    "folder": ("import os; os.mkdir(os.environ['MLEREDUX_SUBMISSION'])", {}),
    "fifo": ("import os; os.mkfifo(os.environ['MLEREDUX_SUBMISSION'])", {}),
    "removes-task": (COPY + "shutil.rmtree(os.environ['MLEREDUX_TASK_DIR'], ignore_errors=True); time.sleep(60)", {}),
}
