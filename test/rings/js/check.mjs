import assert from 'node:assert/strict'
import { inspect } from 'node:util'

/** The gateway, and which engine stands behind its slots: `llama` or `embedded`. */
export const { RING_URL: url, RING_ENGINE: engine } = process.env

export const real = engine === 'llama'

/** What the model of slot `agent` says, whatever it is asked. */
export const sentence = process.env.RING_SENTENCE

/**
 * A tool, and a slot whose model calls it: a model whose template knows tools where the engine leaves the choice to it,
 * any model where the engine holds it to the tool by a grammar.
 */
export const caller = real ? 'caller' : 'agent'
export const tool = real
  ? { name: 'embed_text', description: 'Compares texts', parameters: { type: 'object', properties: { input: { type: 'array', items: { type: 'string' } } }, required: ['input'] } }
  : { name: 'set_state', description: 'Sets the state', parameters: { type: 'object', properties: { mood: { enum: ['good', 'bad'] } }, required: ['mood'] } }

/** Whether these are arguments of the tool. */
export function fitsTool (args) {
  const { input, mood } = typeof args === 'string' ? JSON.parse(args) : args
  assert.ok(real ? input.join() === 'one,two' : /^(good|bad)$/.test(mood), JSON.stringify(args))
}

/** Tries one thing and prints how that went. */
export async function check (name, work) {
  try {
    await work()
    console.log(JSON.stringify({ name }))
  } catch (error) {
    console.log(JSON.stringify({ name, error: inspect(error, { depth: 4 }).slice(0, 3_000) }))
  }
}

/** How many requests of `/v1` the work took, so that a script sees what a client repeats by itself. */
export async function requestsOf (work) {
  const before = await requests()
  await work()
  return await requests() - before
}

/** How many have ended. Waits for those that have not: one whose client left ends a little later. */
async function requests () {
  while ((await told('/api/requests')).requests.length > 0);
  return (await told('/api/stats/requests?window_s=3600')).requests
}

async function told (path) {
  return (await fetch(url + path)).json()
}

/** What the promise is rejected with. */
export async function failureOf (promise) {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}
