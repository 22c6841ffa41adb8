import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { shippedProgram } from '../../program.js'
import type { Peer } from './peer-programs.js'

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
