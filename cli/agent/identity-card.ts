import { z } from 'zod'
import { ApiFailure } from '../client/api-failure.js'
import type { Cli } from '../cli.js'
import type { ApiClient } from '../client/client.js'

/** What agents tell of themselves stands in this dataset of the memory, under this tag. */
const DATASET = 'agents'
const TAG = 'agent-identity'
const PAGE = 200
/** The memory may ask a model. */
const SLOW_MS = 120_000

const cardsSchema = z.looseObject({
  items: z.array(z.looseObject({
    id: z.string(),
    text: z.string(),
    timestamp: z.string(),
    source: z.string().nullable(),
    tags: z.array(z.string())
  })),
  next_cursor: z.string().nullish()
})
export type IdentityCard = z.output<typeof cardsSchema>['items'][number]

/**
 * Every card of the dataset: a search would leave out those whose words are not those of the question. One for each document, of
 * which the memory may keep several memories.
 */
export async function listCards (client: ApiClient): Promise<readonly IdentityCard[]> {
  const cards = new Map<string, IdentityCard>()
  let cursor: string | null | undefined
  do {
    const query = { dataset: DATASET, limit: PAGE, ...cursor == null ? {} : { cursor } }
    const page = await client.call({ path: '/api/memory/list', query, timeoutMs: SLOW_MS }, cardsSchema)
    for (const card of page.items) if (card.tags.includes(TAG) && !cards.has(card.id)) cards.set(card.id, card)
    cursor = page.next_cursor
  } while (cursor != null)
  return [...cards.values()]
}

/** Introduces an agent to the others. Only says so where it fails; without a memory there is nothing to do. */
export async function writeCard (cli: Cli, client: ApiClient, name: string, version: string | null): Promise<void> {
  const text = `${name}${version === null ? '' : ` ${version}`} is an agent that svc installed on this gateway.`
  await quietly(cli, `${name} could not be announced to the other agents`, async () => {
    const body = { text, dataset: DATASET, tags: [TAG], document_id: cardOf(name) }
    await client.raw({ method: 'POST', path: '/api/memory/add', body, timeoutMs: SLOW_MS })
  })
}

/** Takes away what was written of an agent, and what it wrote of itself. Only says so where it fails. */
export async function removeCards (cli: Cli, client: ApiClient, name: string): Promise<void> {
  await quietly(cli, `The announcement of ${name} to the other agents could not be removed`, async () => {
    const own = (await listCards(client)).filter(({ id, source }) => id === cardOf(name) || source === name)
    if (own.length === 0) return
    const body = { ids: own.map(({ id }) => id), dataset: DATASET }
    await client.raw({ method: 'POST', path: '/api/memory/delete', body, timeoutMs: SLOW_MS })
  })
}

function cardOf (name: string): string {
  return `${TAG}-${name}`
}

async function quietly (cli: Cli, problem: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error
    // it is switched off, or not part of this gateway
    if (error.code === 'memory.unavailable' || error.code === 'system.http_404') return
    cli.out.note(`${problem}: ${error.message}`)
  }
}
