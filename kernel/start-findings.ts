import type { ConfigCheck, ConfigService, Finding, Logger } from './contract/index.js'
import { problemText } from './contract/text/problem-text.js'
import type { SlotManager } from './slots/slot-manager.js'

export interface StartFindingsDeps {
  readonly config: Pick<ConfigService, 'snapshot'>
  readonly check: ConfigCheck
  readonly slots: SlotManager
  readonly log: Logger
}

/**
 * Logs what is wrong between the files; each file's own problems were told when it was read. Slots that start by themselves
 * tell their own: of these, what no start has told is told after it.
 * @param started resolves when they have started or failed
 */
export async function tellFindings (
  { config, check, slots, log }: StartFindingsDeps, started: () => Promise<void>, signal: AbortSignal
): Promise<void> {
  const own = config.snapshot.diagnostics
  const tell = ({ file, path, message, code }: Finding): void =>
    log.warn({ file, path, code }, `${file}: ${problemText(path, message)}`)
  const late: Array<Finding & { readonly slot: string }> = []
  for (const finding of await check.findings()) {
    const { file, path, message } = finding
    if (own.some(known => known.file === file && known.path === path && known.message === message)) continue
    const slot = /^slots\/([^/]+)\.toml$/.exec(file)?.[1]
    if (slot !== undefined && slots.names().includes(slot) && !slots.selfStart(slot).aborted) late.push({ ...finding, slot })
    else tell(finding)
  }
  await started()
  if (signal.aborted) return
  for (const finding of late) {
    const isTold = slots.names().includes(finding.slot) && slots.status(finding.slot).failure?.message === finding.message
    if (!isTold) tell(finding)
  }
}
