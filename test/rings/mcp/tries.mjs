import assert from 'node:assert/strict'
import { check, failureOf, url } from '../js/check.mjs'

/** What the ring does for its programs: starts the gateway anew, and is the hub that never answers. */
const desk = process.env.RING_DESK

/** Who the audit log says that it was. */
export const agent = process.env.RING_AGENT
export const address = `${url}/mcp/admin`

export const restart = () => ask('restart', 'POST')
/** Ends once the gateway has asked the hub for this repository. */
export const asked = repo => ask(`asked/${repo}`)
/** Ends once the gateway has given up asking. */
export const left = repo => ask(`left/${repo}`)

async function ask (path, method = 'GET') {
  const response = await fetch(`${desk}/${path}`, { method })
  assert.equal(response.status, 200, await response.text())
}

/** The texts of a result. */
export function textOf ({ content }) {
  return content.map(({ text }) => text).join('')
}

/**
 * What an agent does with the tools of the gateway, whatever its client is.
 * @param names of all tools
 * @param call takes a tool, its arguments and a signal; resolves with `{ text, isError }`
 */
export async function tries (names, call) {
  const told = async (...args) => {
    const { text, isError } = await call(...args)
    assert.ok(!isError, text)
    return JSON.parse(text)
  }
  await check('lists the tools', async () => {
    const all = await names()
    assert.ok(all.length > 50, all.join())
    for (const name of ['slot_list', 'model_pull', 'approval_status']) assert.ok(all.includes(name), name)
  })
  await check('calls a tool', async () => {
    assert.ok((await told('slot_list', {})).slots.some(({ name }) => name === 'agent'))
  })
  await check('reads why a tool failed', async () => {
    const { text, isError } = await call('slot_status', { name: 'nobody' })
    assert.ok(isError)
    assert.match(text, /"http_status":404,"error":\{"code":"slot\.not_found"/)
  })
  await check('reads which argument does not fit', async () => {
    const { text, isError } = await call('model_inspect', { hf_repo: 'no owner' })
    assert.ok(isError)
    assert.match(text, /hf_repo/)
  })
  await check('is told that an operator has to approve', async () => {
    const { status, approval_id } = await told('model_pull', { model_id: 'tiny', hf_repo: 'ring/tiny', hf_filename: 'tiny.gguf' })
    assert.equal(status, 'pending_approval')
    assert.equal((await told('approval_status', { approval_id })).approval.state, 'pending')
  })
  await check('a call that is aborted ends in the gateway', async () => {
    const repo = `ring/${agent}`
    const controller = new AbortController()
    const failed = failureOf(call('model_inspect', { hf_repo: repo }, controller.signal))
    await asked(repo)
    controller.abort()
    await Promise.all([failed, left(repo)])
  })
  await check('does not notice that the gateway was restarted', async () => {
    await restart()
    assert.ok((await told('slot_list', {})).slots.some(({ name }) => name === 'agent'))
    assert.ok((await names()).length > 50)
  })
}
