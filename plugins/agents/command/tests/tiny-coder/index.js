#!/usr/bin/env node
// Usage: tiny-coder MODEL PROMPT_FILE
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const [model, promptFile] = process.argv.slice(2);
const messages = [{ role: "user", content: readFileSync(promptFile, "utf8") }];
mkdirSync("code", { recursive: true });
for (let turn = 0; turn < 10; turn += 1) {
  const answer = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model, messages }),
  });
  if (!answer.ok) {
    console.error(`the model does not answer: ${answer.status} ${await answer.text()}`);
    process.exit(1);
  }
  const text = (await answer.json()).choices[0].message.content;
  console.log(text);
  if (text.includes("DONE")) process.exit(0);
  messages.push({ role: "assistant", content: text });
  const code = /```python\n([^]*?)```/.exec(text)?.[1] ?? "raise SystemExit('no code')";
  writeFileSync("code/solution.py", code);
  const ran = spawnSync("python3", ["code/solution.py"], { encoding: "utf8" });
  console.log(ran.stdout + ran.stderr);
  messages.push({ role: "user", content: `The script ended with ${ran.status}:\n${ran.stdout}${ran.stderr}` });
}
process.exit(1);
