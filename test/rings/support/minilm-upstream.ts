import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Test } from 'tap'
import { eventually } from '../../kernel/runtime/support.js'
import { freePort } from '../../ports.js'

/** Runs a program until its standard input closes, which it does however the test ends. */
const UNTIL_CLOSED = `
import os, runpy, sys, threading
def end():
    sys.stdin.buffer.read()
    os._exit(0)
threading.Thread(target=end, daemon=True).start()
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name='__main__')
`

/**
 * An OpenAI-compatible server with MiniLM's vectors that is not of this repository, and is told its port: the program that
 * `SVC_TEST_MINILM_UPSTREAM` names. Resolves with its base URL; null without that variable.
 * @param models the folder of `minilm.sh`
 */
export async function minilmUpstream (t: Test, models: string): Promise<string | null> {
  const program = process.env.SVC_TEST_MINILM_UPSTREAM
  if (program === undefined) return null
  const port = await freePort()
  const child = spawn(join(models, 'venv/bin/python'), ['-c', UNTIL_CLOSED, program, String(port)], {
    // threads of the algebra for a single text wait for each other longer than they compute
    env: { ...process.env, OPENBLAS_NUM_THREADS: '1' }, stdio: ['pipe', 'ignore', 'pipe']
  })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => { said = `${said}${chunk.toString()}`.slice(-4_000) })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.stdin.end()
    await exited
  })
  const url = `http://127.0.0.1:${port}/v1`
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
  await eventually('the server answers', () => hasEnded() || fetch(`${url}/models`).then(({ ok }) => ok, () => false), 300_000)
  if (hasEnded()) throw new Error(`${program} ended: ${said}`)
  return url
}
