import { createHash } from 'node:crypto'
import { canonicalJson, type NamedToolServer } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { ChangeKind, Connection } from './connection.js'
import { readTools, type ToolList } from './tool-list.js'

const LIST_TIMEOUT_MS = 30_000
const MAX_PAGES = 64
const MAX_ROWS = 1_000
/** Characters of its name, and of its version. */
const MOST_WORD = 200
/** Whatever a server answers: it is read row by row, and its results are handed on as they are. */
export const answerSchema = z.looseObject({})

/** What a server offers, as far as it was asked. */
export interface Learned {
  readonly list: ToolList
  readonly resources: number
  readonly prompts: number
  readonly hasResources: boolean
  readonly hasPrompts: boolean
  readonly name: string
  readonly version: string
  readonly instructions: string | null
}

/** What decides how a server runs, and so what it offers. */
export function keyOf ({ command, args, spec, url, transport, port, path, env, secrets, network }: NamedToolServer): string {
  return createHash('sha256').update(canonicalJson({ command: command ?? null, args, spec, url: url ?? null, transport, port, path, env, secrets, network })).digest('hex')
}

/** Asks for everything that it offers. */
export async function learn ({ client }: Connection, signal: AbortSignal): Promise<Learned> {
  const has = client.getServerCapabilities() ?? {}
  const [tools, resources, prompts] = [
    has.tools === undefined ? [] : await rowsOf(client, 'tools', signal),
    has.resources === undefined ? [] : await rowsOf(client, 'resources', signal),
    has.prompts === undefined ? [] : await rowsOf(client, 'prompts', signal)
  ]
  const { name = '', version = '' } = client.getServerVersion() ?? {}
  return {
    list: readTools(tools),
    resources: resources.length,
    prompts: prompts.length,
    hasResources: has.resources !== undefined,
    hasPrompts: has.prompts !== undefined,
    name: name.slice(0, MOST_WORD),
    version: version.slice(0, MOST_WORD),
    instructions: client.getInstructions()?.slice(0, 4_000) ?? null
  }
}

/** Row by row and not by the protocol's schema: one bad row must not cost the others. */
async function rowsOf (client: Connection['client'], what: ChangeKind, signal: AbortSignal): Promise<readonly unknown[]> {
  const rows: unknown[] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES && rows.length < MAX_ROWS; page++) {
    const answer: Record<string, unknown> = await client.request(
      { method: `${what}/list`, params: cursor === undefined ? {} : { cursor } }, answerSchema, { signal, timeout: LIST_TIMEOUT_MS })
    if (Array.isArray(answer[what])) rows.push(...answer[what] as unknown[])
    if (typeof answer.nextCursor !== 'string' || answer.nextCursor === cursor) break
    cursor = answer.nextCursor
  }
  return rows.slice(0, MAX_ROWS)
}
