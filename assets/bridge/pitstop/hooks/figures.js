// How full the context window is, as the client counts it.
//
// What it may do: read the usage of the session.

// The most parts of one row that are worth telling.
const PART_LIMIT = 16;

// A part that is larger than its row is counted by another rule: among the attachments are records that are not sent (2.1.332).
const named = (rows, most) =>
  (rows ?? [])
    .map(({ name, path, agentType, tokens }) => ({ name: name ?? path ?? agentType ?? "", tokens }))
    .filter(({ tokens }) => tokens > 0 && tokens <= most)
    .sort((one, other) => other.tokens - one.tokens)
    .slice(0, PART_LIMIT);

const byServer = (tools) => {
  const servers = {};
  for (const { serverName, tokens, isLoaded } of tools ?? []) {
    if (isLoaded) servers[serverName] = (servers[serverName] ?? 0) + tokens;
  }
  return Object.entries(servers).map(([name, tokens]) => ({ name, tokens }));
};

const byKind = (messages) =>
  messages && [
    { name: "results of tools", tokens: messages.toolResultTokens },
    { name: "calls of tools", tokens: messages.toolCallTokens },
    { name: "what the agent said", tokens: messages.assistantMessageTokens },
    { name: "what you said", tokens: messages.userMessageTokens },
    { name: "attachments", tokens: messages.attachmentTokens },
  ];

// What the rows consist of, by their names in /context (2.1.332).
const partsOf = (breakdown) => ({
  "System prompt": breakdown.systemPromptSections,
  "System tools": breakdown.systemTools,
  "MCP tools": byServer(breakdown.mcpTools),
  "Custom agents": breakdown.agents,
  "Memory files": breakdown.memoryFiles,
  Skills: breakdown.skills?.skillFrontmatter,
  Messages: byKind(breakdown.messageBreakdown),
});

const rowsOf = (breakdown) => {
  const parts = partsOf(breakdown);
  return breakdown.categories.map(({ name, tokens, kind }) => ({ name, tokens, kind, parts: named(parts[name], tokens) }));
};

export async function readFigures($, detail) {
  const { context, cost } = await $.session.usage(detail ? { breakdown: "summary" } : undefined);
  const parts = context.breakdown;
  return {
    // Before the first answer of the service all is the client's estimate, and only the categories are worth telling.
    used: context.tokens === undefined ? undefined : (parts?.totalTokens ?? context.tokens),
    window: context.window,
    // With nothing set for a window the figure is there all the same, but the client does not compact at it (2.1.330).
    compacts_at: parts?.autocompactSource === "auto" ? undefined : parts?.autoCompactThreshold,
    cost_usd: cost?.usd,
    categories: parts && rowsOf(parts),
  };
}
