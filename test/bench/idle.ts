import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shippedProgram } from '../program.js'
import type { Bar } from './lists.js'
import { useOf } from './process-use.js'

const standIn = fileURLToPath(new URL('./stand-in.js', import.meta.url))
const SLOTS = ['one', 'two', 'three', 'four', 'five']
/** After a start: what it leaves behind is collected by then, which V8 begins when nothing has happened for half a minute. */
const REST_MS = 60_000

/** What a gateway uses that has five ready slots and no requests; its engines are not counted. */
export interface Idle {
  readonly mib: number
  /** Hundredths of a core. */
  readonly percent: number
}

/** The real program, whose engines are child processes, over so many milliseconds. */
export async function measureIdle (home: string, ms: number): Promise<Idle> {
  const etc = join(home, 'etc/svc')
  await mkdir(join(etc, 'slots'), { recursive: true })
  await mkdir(join(etc, 'engines'), { recursive: true })
  await writeFile(join(etc, 'svc.toml'), '[runtime]\ndriver = "process"\n')
  await writeFile(join(etc, 'engines/stand-in.toml'), [
    'name = "stand-in"', 'apiVersion = 1', 'runtime = "process"', `process = ["node", ${JSON.stringify(standIn)}, "{port}"]`,
    '[surfaces.chat]', 'path = "/v1/chat/completions"', ''
  ].join('\n'))
  const model = join(home, 'model.bin')
  await writeFile(model, '')
  for (const name of SLOTS) {
    await writeFile(join(etc, `slots/${name}.toml`), `type = "llm"\nprovider = "stand-in"\ndevice = "cpu"\n[model]\ndefault = ${JSON.stringify(model)}\n`)
  }
  const child = spawn(process.execPath, [shippedProgram(), 'serve', '--home', home, '--port', '0', '--ready-json', '--stop-engines'], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const gone = once(child, 'exit')
  try {
    const [line] = await Promise.race([once(child.stdout, 'data'), gone.then(() => { throw new Error('the gateway ended at its start') })]) as [Buffer]
    const { url } = JSON.parse(line.toString()) as { url: string }
    await Promise.all(SLOTS.map(name => loaded(url, name)))
    await new Promise(resolve => setTimeout(resolve, REST_MS))
    const [before, from] = [useOf(child.pid!).cpuMs, performance.now()]
    await new Promise(resolve => setTimeout(resolve, ms))
    const { cpuMs, rss } = useOf(child.pid!)
    return { mib: rss / 2 ** 20, percent: (cpuMs - before) / (performance.now() - from) * 100 }
  } finally {
    child.kill('SIGTERM')
    await gone
  }
}

async function loaded (url: string, name: string): Promise<void> {
  const answer = await fetch(`${url}/api/slots/${name}/load`, { method: 'POST' })
  if (!answer.ok) throw new Error(`loading ${name} was answered ${answer.status}: ${await answer.text()}`)
  for (;;) {
    const { state } = await (await fetch(`${url}/api/slots/${name}`)).json() as { state: string }
    if (state === 'ready') return
    if (state === 'error') throw new Error(`${name} does not load`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

export function idleBars ({ mib, percent }: Idle): readonly Bar[] {
  return [
    { name: 'idle with five ready slots, % of a core', value: percent, limit: '< 0.3', ok: percent < 0.3 },
    { name: 'idle with five ready slots, MiB', value: mib, limit: '<= 100', ok: mib <= 100 }
  ]
}
