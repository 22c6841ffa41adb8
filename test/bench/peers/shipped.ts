import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shippedProgram } from '../../program.js'
import type { Peer, PeerPlace, PeerLaunch } from './peer-programs.js'

const standIn = fileURLToPath(new URL('../stand-in.js', import.meta.url))

/**
 * The gateway as it ships, bundled, with all default plugins, in front of an engine that a slot of its own starts.
 * @param engine words of the command, `{port}` where its port goes
 */
export function shippedSlot (engine: readonly string[]): Peer {
  const launch = ({ port, folder }: PeerPlace, command: readonly string[]): PeerLaunch => {
    const etc = join(folder, 'etc/svc')
    for (const part of ['engines', 'slots']) mkdirSync(join(etc, part), { recursive: true })
    writeFileSync(join(etc, 'svc.toml'), '[server]\nlog_level = "warn"\n[slots]\nautostart = false\n[runtime]\ndriver = "process"\n')
    writeFileSync(join(etc, 'engines/bench.toml'), `name = "bench"
apiVersion = 1
needs_model = false
concurrency = "unlimited"
process = ${JSON.stringify(command)}
[surfaces.chat]
path = "/v1/chat/completions"
streaming = true
`)
    writeFileSync(join(etc, 'slots/agent.toml'), 'type = "llm"\nprovider = "bench"\ndevice = "cpu"\nidle_timeout_s = 0\n')
    return { args: [shippedProgram(), 'serve', '--home', folder, '--port', String(port)] }
  }
  return {
    name: 'svc, slot',
    program: 'svc-slot',
    isOneProcess: true,
    launch: place => launch(place, engine),
    coldLaunch: place => launch(place, [process.execPath, standIn, '{port}']),
    call: () => ({ model: 'agent' })
  }
}

/** The gateway as it ships, bundled, with all default plugins, in front of a remote upstream. */
export const shipped: Peer = {
  name: 'svc, remote upstream',
  program: 'svc',
  launch: ({ port, folder, upstream }) => {
    const etc = join(folder, 'etc/svc')
    mkdirSync(etc, { recursive: true })
    writeFileSync(join(etc, 'svc.toml'), '[server]\nlog_level = "warn"\n')
    writeFileSync(join(etc, 'upstreams.toml'), `[[upstream]]
name = "remote"
kind = "remote"
url = "${upstream}/v1"
auth_style = "bearer"
auth_value_env = "BENCH_KEY"
model_filters = { models = ["bench"] }
`)
    writeFileSync(join(etc, 'api.env'), 'BENCH_KEY=sk-bench-0123456789\n', { mode: 0o600 })
    return { args: [shippedProgram(), 'serve', '--home', folder, '--port', String(port)] }
  },
  call: () => ({ model: 'remote/bench' })
}
