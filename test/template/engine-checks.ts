import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../ports.js'
import { until } from '../wire/wire-gateway.js'
import { startNode, type Running } from './shell.js'
import type { Workshop } from './workshop.js'

/** Knows one voice; asked to speak, it writes its process id down and says nothing for a minute. */
const MUTE = `#!/bin/sh
if [ "$1" = --voices ]; then printf 'Pty Language Age/Gender VoiceName File\\n 5 en-us --/M English_(America) gmw/en-US\\n'; exit; fi
echo $$ >"$PID_FILE.new" && /bin/mv "$PID_FILE.new" "$PID_FILE"
exec /bin/sleep 60
`

interface MuteEngine extends Running {
  readonly url: string
  readonly program: string
  readonly speak: (body: string | object, signal?: AbortSignal) => Promise<Response>
  /** Process id of the espeak-ng that speaks now. */
  readonly speaker: () => Promise<number>
}

/** The engine program by itself, on an espeak-ng that never ends. */
export async function engineChecks (t: Test, shop: Workshop): Promise<void> {
  t.test('it tells what it cannot do, in the shape of the wire format', async t => {
    const { speak, program } = await muteEngine(t, shop)
    const cases: ReadonlyArray<readonly [string | object, number, string | null]> = [
      ['{', 400, null],
      ['[]', 400, 'input'],
      [{ input: ' ' }, 400, 'input'],
      [{ input: 'x'.repeat(4097) }, 400, 'input'],
      [{ input: 'x'.repeat(100_000) }, 413, null],
      [{ input: 'hi', voice: '--help' }, 400, 'voice'],
      [{ input: 'hi', speed: 0.2 }, 400, 'speed'],
      [{ input: 'hi', speed: '1' }, 400, 'speed'],
      [{ input: 'hi', response_format: 'mp3' }, 400, 'response_format']
    ]
    for (const [body, status, param] of cases) {
      const response = await speak(body)
      t.equal(response.status, status, JSON.stringify(body).slice(0, 60))
      t.match(await response.json(), { error: { message: String, type: 'invalid_request_error', param, code: null } })
    }
    await rm(program)
    const response = await speak({ input: 'hi' })
    t.equal(response.status, 503, 'espeak-ng was uninstalled meanwhile')
    t.match(await response.json(), { error: { message: /apt-get install espeak-ng/, type: 'server_error' } })
  })

  t.test('without espeak-ng, or with a voice that is none, it ends and says why', async t => {
    const { program } = await muteEngine(t, shop)
    const start = (args: readonly string[], path: string): Promise<unknown> =>
      startNode(t, [engineOf(shop), '--port', '0', ...args], { ...shop.env, PATH: path }).then(() => 'it runs', String)
    t.match(await start([], '/nowhere'), /ended with 1: espeak-ng cannot run.*apt-get install espeak-ng/)
    t.match(await start(['--language', 'tlh'], join(program, '..')), /ended with 1: espeak-ng has no voice tlh/)
    t.match(await start(['--langage', 'de'], join(program, '..')), /ended with 1[^]*--langage/)
  })

  for (const response_format of ['wav', 'pcm']) {
    t.test(`a client that leaves ends its espeak-ng: ${response_format}`, async t => {
      const { speak, speaker, url } = await muteEngine(t, shop)
      const client = new AbortController()
      const answer = speak({ input: 'hi', response_format }, client.signal).then(() => 'answered', () => 'left')
      const pid = await speaker()
      client.abort()
      t.equal(await answer, 'left')
      await until(() => !lives(pid), 'espeak-ng is gone')
      t.equal((await fetch(`${url}/health`)).status, 200, 'the engine goes on')
    })
  }

  t.test('SIGTERM ends it, and what it is doing', async t => {
    const { speak, speaker, end } = await muteEngine(t, shop)
    const answer = speak({ input: 'hi' }).then(() => 'answered', () => 'broken off')
    const pid = await speaker()
    t.equal(await end('SIGTERM'), 0)
    t.equal(await answer, 'broken off')
    await until(() => !lives(pid), 'espeak-ng is gone')
  })
}

async function muteEngine (t: Test, shop: Workshop): Promise<MuteEngine> {
  const folder = join(shop.folder, `mute-${t.name.replaceAll(/\W+/g, '-')}`)
  const program = join(folder, 'espeak-ng')
  const pidFile = join(folder, 'pid')
  await mkdir(folder)
  await writeFile(program, MUTE)
  await chmod(program, 0o755)
  const port = await freePort()
  const env = { ...shop.env, PATH: folder, PID_FILE: pidFile }
  const running = await startNode(t, [engineOf(shop), '--port', String(port)], env)
  const url = `http://127.0.0.1:${port}`
  let pid = ''
  return {
    ...running,
    url,
    program,
    speak: (body, signal) => fetch(`${url}/v1/audio/speech`, {
      method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), ...(signal === undefined ? {} : { signal })
    }),
    speaker: async () => {
      await until(() => {
        void readFile(pidFile, 'utf8').then(text => { pid = text }, () => {})
        return pid !== ''
      }, 'espeak-ng was started')
      return Number(pid)
    }
  }
}

function engineOf (shop: Workshop): string {
  return join(shop.plugin, 'dist', 'src', 'engine.js')
}

function lives (pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
