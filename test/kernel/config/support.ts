import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import type { Clock, ConfigFileDefinition, Logger, Paths } from '../../../kernel/contract/index.js'
import { createConfigService, type ConfigServiceOptions } from '../../../kernel/config/store.js'
import type { WithLock } from '../../../kernel/config/locker.js'
import { shippedProviders } from '../../providers.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { SerialQueue } from '../../../kernel/async/serial-queue.js'
import { settingsTables } from '../../../plugins/index.js'
import { capabilitiesFile } from '../../../plugins/services/capabilities/capabilities-file.js'
import { stacksFile } from '../../../plugins/services/stack-catalog/stacks-file.js'

export interface Logged { readonly level: string, readonly fields: object, readonly message: string }

/** A logger that keeps what it was told. */
export function recordingLog (): Logger & { readonly lines: Logged[] } {
  const lines: Logged[] = []
  const fn = (level: string) => (fields: object | string, message?: string) => {
    lines.push(typeof fields === 'string' ? { level, fields: {}, message: fields } : { level, fields, message: message ?? '' })
  }
  return { lines, debug: fn('debug'), info: fn('info'), warn: fn('warn'), error: fn('error') }
}

/** Time that stands until it is moved. Timers fire inside of `advance`. */
export function manualClock (startMs = Date.UTC(2026, 0, 1)): Clock & { advance (ms: number): void } {
  let passed = 0
  let timers: { at: number, fn: () => void }[] = []
  return {
    now: () => startMs + passed,
    monotonic: () => passed,
    setTimer (ms, fn) {
      const timer = { at: passed + ms, fn }
      timers.push(timer)
      return { cancel: () => { timers = timers.filter(other => other !== timer) } }
    },
    advance (ms) {
      passed += ms
      const due = timers.filter(timer => timer.at <= passed)
      timers = timers.filter(timer => timer.at > passed)
      for (const { fn } of due) fn()
    }
  }
}

/** The lock of one process: these tests have no second one. */
export function processLock (): WithLock {
  const queue = new SerialQueue()
  return (_file, work) => queue.run(work)
}

export function writeTree (root: string, files: Readonly<Record<string, string>>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), content)
  }
}

/** A home with files below its etc folder, and the configuration service on it. */
/** As a plugin has one. */
const wordsFile: ConfigFileDefinition = {
  file: 'words.toml', schema: z.strictObject({ words: z.array(z.string()).default([]) })
}

export async function openHome (
  home: string, files: Readonly<Record<string, string>>, options: Partial<ConfigServiceOptions> = {}
) {
  const paths: Paths = resolvePaths({}, { home })
  writeTree(paths.etc, files)
  const log = recordingLog()
  const config = await createConfigService({
    paths, env: {}, log, clock: manualClock(), withLock: processLock(), tables: settingsTables, providers: shippedProviders,
    owned: [wordsFile, capabilitiesFile, stacksFile],
    ...options
  })
  return { config, log, paths }
}
