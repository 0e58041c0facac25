// The tools of the agent: the client is given them, and each call is passed on to the pitstop that hosts this session.
//
// What it may do: register the tools listed in TOOLS, read the files that PITSTOP_BRIDGE names, read the session id, and call
// the Unix socket named there. It sees no call of any other tool. What the calls do is described in `crates/agent/src/bridge/tools.rs`.

import { find } from "./socket.js";

const UNANSWERED = "pitstop does not answer, nothing was kept: write it into .pitstop/scratchpad.md instead";

const call = async ($, { tool, tool_use_id, ...input }) => {
  try {
    const { socketPath, token } = await find($);
    const response = await $.http.fetch(`http://pitstop/tools/${tool.split("__").pop()}`, {
      method: "POST",
      socketPath,
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({ session: await $.session.id(), input }),
    });
    const { text, error } = JSON.parse(response.text);
    return { result: text ?? `Error: ${error}` };
  } catch {
    return { result: `Error: ${UNANSWERED}` };
  }
};

// The session's start waits for it: tools that come later are announced only, and change what the client has cached.
export async function giveTools($) {
  await Promise.all(TOOLS.map((tool) => $.tool.register({ ...tool, isDeferred: false }).catch(() => undefined)));
}

export const answerTools = (on) => {
  on("tool.call", { tool: "mcp__pitstop__context" }, async ($, e) => call($, e));
  on("tool.call", { tool: "mcp__pitstop__note" }, async ($, e) => call($, e));
  on("tool.call", { tool: "mcp__pitstop__decision" }, async ($, e) => call($, e));
  on("tool.call", { tool: "mcp__pitstop__done" }, async ($, e) => call($, e));
  on("tool.call", { tool: "mcp__pitstop__handoff_preview" }, async ($, e) => call($, e));
  on("tool.call", { tool: "mcp__pitstop__request_reboot" }, async ($, e) => call($, e));
};

// Behind this line pitstop writes the list, which is empty where the agent has the tools by another way or not at all.
