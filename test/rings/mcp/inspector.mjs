import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { check } from '../js/check.mjs'
import { address, agent, textOf, tries } from './tries.mjs'

const home = join(import.meta.dirname, '..')
const program = join(home, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js')

/** One command of a shell. Stopping it is what a user does with Ctrl-C. */
async function inspect (method, more, signal) {
  const child = spawn(process.execPath, [
    program, '--cli', address, '--transport', 'http', '--header', `X-svc-Agent: ${agent}`, '--method', method, ...more
  ], { env: { PATH: process.env.PATH, HOME: home }, stdio: ['ignore', 'pipe', 'pipe'], signal, killSignal: 'SIGINT' })
  const ended = new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { output, errors, code }
}

const eras = { 'older revisions': [], 'revision 2026-07-28': ['--protocol-era', 'modern'] }
for (const [name, era] of Object.entries(eras)) {
  await check(`${name}: lists tools whose schemas every model's provider takes`, async () => {
    const { output, errors, code } = await inspect('tools/list', ['--strict', ...era])
    assert.equal(code, 0, errors)
    assert.ok(JSON.parse(output).tools.length > 50)
  })
}

async function names () {
  const { output, errors } = await inspect('tools/list', [])
  assert.ok(output.startsWith('{'), errors)
  return JSON.parse(output).tools.map(({ name }) => name)
}

await tries(names, async (name, args, signal) => {
  const { output, errors } = await inspect('tools/call', ['--tool-name', name, '--tool-args-json', JSON.stringify(args)], signal)
  assert.ok(output.startsWith('{'), errors)
  const result = JSON.parse(output)
  return { text: textOf(result), isError: result.isError === true }
})
