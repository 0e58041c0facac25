// How full the context window is, as the client counts it.
//
// What it may do: read the usage of the session.

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
    categories: parts?.categories.map(({ name, tokens, kind }) => ({ name, tokens, kind })),
  };
}
