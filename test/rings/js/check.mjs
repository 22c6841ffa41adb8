import assert from 'node:assert/strict'
import { inspect } from 'node:util'

/** The gateway, and which engine stands behind its slots: `llama` or `embedded`. */
export const { RING_URL: url, RING_ENGINE: engine } = process.env

/** Whether it has slots that hear, speak and paint as well. */
export const media = engine === 'llama'

/** What the model of slot `agent` says, whatever it is asked. */
export const sentence = process.env.RING_SENTENCE

/** A tool, and a slot whose model calls it. */
export const caller = 'caller'
export const tool = {
  name: 'embed_text',
  description: 'Compares texts',
  parameters: { type: 'object', properties: { input: { type: 'array', items: { type: 'string' } } }, required: ['input'] }
}

/** A slot whose model thinks before it speaks, and the model of an upstream that sees pictures. */
export const thinker = 'thinker'
export const seer = 'far/gpt-9'

/** A picture of one pixel, in Base64. */
export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

/** Whether these are the arguments that the model calls it with. */
export function fitsTool (args) {
  assert.deepEqual(typeof args === 'string' ? JSON.parse(args) : args, { input: ['one', 'two'] })
}

/** A second of silence. */
export function wav () {
  const file = Buffer.alloc(44 + 32_000)
  file.write('RIFF', 0)
  file.writeUInt32LE(36 + 32_000, 4)
  file.write('WAVEfmt ', 8)
  file.set([16, 0, 0, 0, 1, 0, 1, 0, 0x80, 0x3e, 0, 0, 0, 0x7d, 0, 0, 2, 0, 16, 0], 16)
  file.write('data', 36)
  file.writeUInt32LE(32_000, 40)
  return file
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
  const until = Date.now() + 120_000
  for (let active; (active = (await told('/api/requests')).requests).length > 0;) {
    if (Date.now() > until) throw new Error(`still active: ${JSON.stringify(active)}; slots: ${JSON.stringify(await told('/api/slots'))}`)
  }
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
