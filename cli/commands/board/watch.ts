import { on } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { harmless, oneLine } from '../../terminal/text-width.js'
import { boardOption, boardQuery, lanesSchema, type BoardOption } from './task-record.js'

const eventSchema = z.looseObject({
  id: z.number(), kind: z.string(), task_id: z.string(), json: z.record(z.string(), z.unknown()).catch({})
})
const frameSchema = z.looseObject({ events: z.array(eventSchema), cursor: z.number(), gap: z.boolean().optional() })

/** How long to wait before the gateway is asked again, in milliseconds. */
const AGAIN_MS = 1_000

export function addBoardWatch (board: Command, cli: Cli): void {
  board.command('watch')
    .description('print each event on the board until Ctrl-C; resumes where it left off when the gateway restarts')
    .addOption(boardOption())
    .option('--since <cursor>', 'start after this event instead of now')
    .option('--json', 'print each event as a line of JSON')
    .addHelpText('after', examples('svc board watch', 'svc board watch --json | jq .kind'))
    .action(async ({ since, json, ...option }: BoardOption & { since?: string, json?: true }, command: Command) => {
      const client = cli.client(command)
      // a gateway that is not there, or has no such board, is told as by any command
      await client.call({ path: '/api/board', query: boardQuery(option) }, lanesSchema)
      if (json !== true) cli.out.note('Showing events on the board as they happen; stop with Ctrl-C.')
      let cursor = since
      for (;;) {
        const address = new URL(`${client.base.replace(/^http/, 'ws')}/api/board/events`)
        const query = { ...boardQuery(option), ...(cursor === undefined ? {} : { since: cursor }) }
        address.search = new URLSearchParams(query).toString()
        for await (const data of frames(address, cli.signal)) {
          const frame = frameSchema.parse(JSON.parse(data))
          cursor = String(frame.cursor)
          if (frame.gap === true) cli.out.note('Some events are missing here: they are no longer kept.')
          for (const event of frame.events) {
            await cli.out.write(`${json === true ? JSON.stringify(event) : lineOf(event)}\n`, cli.signal)
          }
        }
        await wait(AGAIN_MS, undefined, { signal: cli.signal })
      }
    })
}

function lineOf ({ kind, task_id: task, json }: z.output<typeof eventSchema>): string {
  const words = Object.entries(json).map(([key, value]) => `${key} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return harmless(oneLine(`${task} ${kind}: ${words.join(', ')}`))
}

/** What comes over one socket, until that ends for whatever reason. */
async function* frames (address: URL, signal: AbortSignal): AsyncGenerator<string> {
  const { WebSocket } = await import('ws')
  const socket = new WebSocket(address)
  try {
    for await (const [data] of on(socket, 'message', { close: ['close'], signal }) as AsyncIterable<[Buffer]>) yield data.toString()
  } catch {
    signal.throwIfAborted()
  } finally {
    socket.on('error', () => {})
    socket.terminate()
  }
}
