export interface PolicyQuestion {
  readonly server: string
  readonly tool: string
  /** Whether its tools are the gateway's own and its plugins', which a name alone means. */
  readonly isOwn: boolean
  /** The agent's own file gates it. */
  readonly byFile: boolean
}

/**
 * Whether a gated call needs no operator, by `[approvals] auto`. What is said of one agent is meant, so a file that gates a
 * tool is not overruled; and a tool of a server that was installed does not run by itself because it has the name of one that
 * may. Pure.
 */
export function runsByItself (auto: readonly string[], { server, tool, isOwn, byFile }: PolicyQuestion): boolean {
  if (byFile) return false
  return auto.includes(`${server}/${tool}`) || (isOwn && auto.includes(tool))
}
