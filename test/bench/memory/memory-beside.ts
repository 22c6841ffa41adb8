import type { Dispatcher } from 'undici'
import type { Bar } from '../lists.js'
import { residentOf } from '../process-use.js'
import { conversationsOf } from './locomo.js'
import { EMBED_MODEL } from './memory-models.js'
import { answered, besideHindsight, called, gateway, type Running } from './memory-servers.js'

export interface MemoryServer {
  /** From its start to its first answer; null for one that ran already. */
  readonly ready_ms: number | null
  readonly retain_p50_ms: number
  /** Of a bank of 1,000 memories, by the budget that is asked for. */
  readonly recall_p50_ms: Readonly<Record<RecallBudget, number>>
  /** With all its processes, what they share counted once; null for one whose processes are not known. */
  readonly resident_mib: number | null
}

/** The embedded memory and a Hindsight server, both over HTTP and with the same vectors, asked the same things. */
export interface MemoryBeside {
  readonly svc: MemoryServer
  readonly hindsight: MemoryServer
  /** What of a recall is the models' own, with either: the vector of one query. */
  readonly vector_p50_ms: number
}

const BANK_SIZE = 1_000
const SINGLES = 50
const BATCH = 50
const WARM = 5
/** `mid` is what the wire takes by default, and what the public clients of Hindsight ask for. */
const budgets = ['low', 'mid'] as const
type RecallBudget = typeof budgets[number]
/** Of each budget. Both servers have been asked all others before: what is measured is not how long they take to warm up. */
const RECALLS = 100
const WARM_RECALLS = 240
/** That one of them is asked before the other one is. */
const TURN = 20

interface Texts {
  /** Single sentences, each of which is one memory to either. */
  readonly sentences: readonly string[]
  /** What people ask of them: a question has words that very many of the sentences have, and a sentence of its own has few. */
  readonly questions: readonly string[]
}

function textsOf (file: string): Texts {
  const conversations = conversationsOf(file)
  const turns = conversations.flatMap(({ conversation }) => Object.values(conversation).filter(Array.isArray).flat())
  const found = (turns as Array<{ readonly text: string }>).map(({ text }) => /^[^.!?\n]{20,}[.!?]/.exec(text)?.[0]).filter(text => text !== undefined)
  const questions = conversations.flatMap(({ qa }) => qa.map(({ question }) => question))
  return { sentences: [...new Set(found)].slice(0, BANK_SIZE), questions: [...new Set(questions)] }
}

const BANK = `/v1/default/banks/bench-${process.pid}`
type BankCall = (method: Dispatcher.HttpMethod, path: string, body?: object) => ReturnType<typeof called>

function bankOf ({ url }: Running): BankCall {
  return (method, path, body) => called(url, method, `${BANK}${path}`, body)
}

/** A bank of that many memories; returns p50 of a retain of one. */
async function fill (running: Running, sentences: readonly string[]): Promise<number> {
  const call = bankOf(running)
  await call('PUT', '', { name: 'bench' })
  // facts alone, on both sides
  await call('PATCH', '/config', { updates: { enable_observations: false } })
  const retain = (texts: readonly string[]): Promise<unknown> =>
    answered(running.url, 'POST', `${BANK}/memories`, { items: texts.map(content => ({ content })) })
  let made = WARM + SINGLES
  await times(sentences.slice(0, WARM), text => retain([text]))
  const retained = p50(await times(sentences.slice(WARM, made), text => retain([text])))
  for (; made < BANK_SIZE; made += BATCH) await retain(sentences.slice(made, Math.min(made + BATCH, BANK_SIZE)))
  for (const status of ['pending', 'processing']) {
    while ((await call('GET', `/operations?status=${status}`)).total > 0) await new Promise(resolve => { setTimeout(resolve, 200) })
  }
  // a recall is measured of memories that have their vectors, on both sides
  while (running.vectors !== null && (await call('GET', running.vectors)).pending > 0) await new Promise(resolve => { setTimeout(resolve, 200) })
  const { total } = await call('GET', '/memories/list?limit=1')
  if (total < BANK_SIZE * 0.95) throw new Error(`the bank has ${total} memories`)
  return retained
}

/** P50 of recalls by their budget, for each server: the same questions to each, in turns, for what the machine does besides. */
async function recalls (
  servers: readonly Running[], questions: readonly string[]
): Promise<ReadonlyArray<MemoryServer['recall_p50_ms']>> {
  const found = servers.map(() => ({ low: NaN, mid: NaN }))
  let next = 0
  const ask = async (budget: RecallBudget, count: number): Promise<number[][]> => {
    const asked = questions.slice(next, next += count)
    const took = servers.map((): number[] => [])
    for (let from = 0; from < asked.length; from += TURN) {
      for (const [i, { url }] of servers.entries()) {
        const recall = (query: string): Promise<unknown> => answered(url, 'POST', `${BANK}/memories/recall`, { query, budget })
        took[i]!.push(...await times(asked.slice(from, from + TURN), recall))
      }
    }
    return took
  }
  for (const budget of budgets) await ask(budget, WARM_RECALLS)
  for (const budget of budgets) for (const [i, took] of (await ask(budget, RECALLS)).entries()) found[i]![budget] = p50(took)
  return found
}

/** Milliseconds that each took, one after the other. */
async function times (texts: readonly string[], work: (text: string) => Promise<unknown>): Promise<number[]> {
  const took: number[] = []
  for (const text of texts) {
    const start = performance.now()
    await work(text)
    took.push(performance.now() - start)
  }
  return took
}

function p50 (took: readonly number[]): number {
  return [...took].sort((a, b) => a - b)[Math.floor(took.length / 2)]!
}

/** Null where there is no such server. */
export async function measureBeside (file: string, home: string, say: (text: string) => void): Promise<MemoryBeside | null> {
  const beside = await besideHindsight(false, async server => {
    const { sentences, questions } = textsOf(file)
    const embed = (input: readonly string[]): Promise<unknown> => called(server.models, 'POST', '/embeddings', { model: EMBED_MODEL, input })
    // the models remember what they have computed: the second to ask would be spared it
    await embed([...sentences, ...questions])
    const ours = await gateway(home, server.models)
    try {
      const [svc, hindsight] = await besideEachOther([ours, server], sentences, questions)
      const vector = p50(await times(questions.slice(0, RECALLS), text => embed([text])))
      for (const [name, its] of Object.entries({ svc: svc!, Hindsight: hindsight! })) {
        const { retain_p50_ms: retain, recall_p50_ms: { low, mid }, resident_mib: resident, ready_ms: ready } = its
        say(`  ${name}: retain p50 ${retain.toFixed(1)} ms, recall p50 at ${BANK_SIZE} memories ${low.toFixed(1)} ms (low) and ` +
          `${mid.toFixed(1)} ms (mid), ${resident?.toFixed(0) ?? '-'} MiB resident, ready after ${ready === null ? '-' : (ready / 1000).toFixed(1)} s`)
      }
      say(`  of either recall, the models take ${vector.toFixed(1)} ms for the query's vector`)
      return { svc: svc!, hindsight: hindsight!, vector_p50_ms: vector }
    } finally {
      await ours.stop()
    }
  })
  if (typeof beside !== 'string') return beside
  say(`  not beside a Hindsight server: ${beside}`)
  return null
}

async function besideEachOther (
  servers: readonly Running[], sentences: readonly string[], questions: readonly string[]
): Promise<MemoryServer[]> {
  const retained: number[] = []
  for (const server of servers) retained.push(await fill(server, sentences))
  const recalled = await recalls(servers, questions)
  const found = servers.map(({ pids, readyMs }, i) => ({
    ready_ms: readyMs, retain_p50_ms: retained[i]!, recall_p50_ms: recalled[i]!,
    // a process alone shares its memory with none
    resident_mib: pids === null ? null : residentOf(pids, pids.length > 1) / 2 ** 20
  }))
  for (const server of servers) await bankOf(server)('DELETE', '')
  return found
}

export function besideBars (beside: MemoryBeside | null): readonly Bar[] {
  if (beside === null) return []
  const { svc, hindsight } = beside
  const share = (name: string, ours: number | null, theirs: number | null, most: number): Bar[] =>
    ours === null || theirs === null ? [] : [{ name: `memory beside Hindsight: ${name}`, value: ours / theirs, limit: `<= ${most}`, ok: ours <= theirs * most }]
  return [
    ...share('retain p50', svc.retain_p50_ms, hindsight.retain_p50_ms, 0.1),
    ...budgets.flatMap(budget => share(`recall p50, ${budget}`, svc.recall_p50_ms[budget], hindsight.recall_p50_ms[budget], 0.1)),
    ...share('resident memory', svc.resident_mib, hindsight.resident_mib, 0.25), ...share('ready', svc.ready_ms, hindsight.ready_ms, 1)
  ]
}
