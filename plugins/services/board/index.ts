import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { core, definePlugin, messageOf } from 'svc-gateway/plugin'
import { z } from 'zod'
import { BoardData } from './board-data.js'
import { commandRunner } from './command-runner.js'
import { openDatabase } from './database.js'
import { boardError } from './errors.js'
import { boardRef, type AgentRunner } from './ref.js'

const seconds = z.number().min(1).max(7 * 86_400)

const configSchema = z.strictObject({
  tick_interval_s: seconds.default(30).meta({ description: 'How often ready tasks are looked for; changes of the board are noticed at once' }),
  failure_limit: z.int().min(1).max(100).default(3).meta({ description: 'Failures in a row after which a task is blocked' }),
  claim_ttl_s: seconds.default(3600).meta({ description: 'How long an agent may work on a task' }),
  max_in_flight: z.int().min(1).max(64).default(2).meta({ description: 'Maximum number of agents that work at a time' }),
  plan: z.strictObject({
    max_tokens: z.int().min(64).max(65_536).default(4096).meta({ description: 'Maximum tokens in an answer of the model that specifies or decomposes a task' }),
    timeout_s: seconds.default(300).meta({ description: 'How long that model may take to answer' }),
    most_parts: z.int().min(1).max(50).default(12).meta({ description: 'Maximum number of parts that a task is split into' }),
    most_depth: z.int().min(1).max(10).default(2).meta({ description: 'Maximum levels of parts below a task: with 1, parts are not split again' }),
    auto_per_hour: z.int().min(1).max(1000).default(20).meta({ description: 'Maximum calls of `auto_decompose` to a model per hour; further tasks wait' })
  }).prefault({}).meta({ description: '`specify` and `decompose`' }),
  agents: z.record(z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/), z.strictObject({
    command: z.array(z.string().min(1)).min(1).meta({ description: 'Program and arguments' }),
    label: z.string().default(''),
    folder: z.string().nullable().default(null).meta({ description: 'Working directory; default is that of the gateway' }),
    env: z.record(z.string(), z.string()).default({})
  })).default({}).meta({ description: 'Programs of this machine that can be given tasks' })
})

const FILE = 'board.db'

/** The board: tasks for people and agents, in a database of its own. See README.md. */
export default definePlugin({
  name: 'board',
  kind: 'service',
  apiVersion: 1,
  errors: boardError,
  configSchema,
  requires: { activity: core.activity, clock: core.clock, dispatch: core.dispatch, info: core.info, programs: core.programs },
  provides: [boardRef],
  databases: [{ path: ({ own }) => join(own, FILE), upgrade: async path => (await openDatabase(path)).close() }],
  register (ctx) {
    const { config, log } = ctx
    const { activity, clock, dispatch, info, programs } = ctx.services
    const { tick_interval_s: tick, claim_ttl_s: ttl, failure_limit: failures, max_in_flight: most } = config
    const settings = { tick_interval: tick, failure_limit: failures, claim_ttl: ttl, max_in_flight: most }
    const runners: AgentRunner[] = [commandRunner({ clock, programs, agents: config.agents, baseUrl: () => info.baseUrl })]
    const path = join(ctx.stateDir, FILE)
    const open = async (): Promise<BoardData> => {
      const now = (): number => Math.floor(clock.now()) / 1000
      const parts = { activity, clock, log, settings, runners: () => runners, dispatch, plan: config.plan }
      const board = new BoardData(await openDatabase(path), now, parts)
      await board.start()
      return board
    }
    let opened: Promise<BoardData> | null = null
    // one that could not be opened is tried again with the next call
    const opening = (): Promise<BoardData> => opened ??= open().catch((error: unknown) => {
      opened = null
      throw error
    })
    ctx.provide(boardRef, {
      open: opening,
      useRunner: runner => {
        const look = (): void => { void opened?.then(board => board.look(), () => {}) }
        runners.push(runner)
        const unfollow = runner.follow?.(look)
        look()
        return () => {
          unfollow?.()
          runners.splice(runners.indexOf(runner), 1)
        }
      }
    })
    ctx.onStart(() => {
      // a gateway without a board does not pay for one
      if (existsSync(path)) void opening().catch((error: unknown) => log.error({ error: messageOf(error) }, 'the board cannot be opened'))
    })
    ctx.onStop(async () => {
      const board = await opened?.catch(() => null)
      await board?.close()
    })
  }
})
