import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { root } from './repository.js'

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly dev?: boolean
  readonly optional?: boolean
  readonly peer?: boolean
  readonly hasInstallScript?: boolean
}

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> }
const locked = Object.entries(packages).filter(([path, { link }]) => path !== '' && link !== true)
const shipped = locked.filter(([, { dev, optional, peer }]) => dev !== true && optional !== true && peer !== true)

t.test('whatever is installed is the very thing that was locked', async t => {
  t.ok(locked.length > 100)
  for (const [path, { version, integrity }] of locked) t.match([version, integrity], [/^\d+\.\d+\.\d+/, /^sha512-.{88}/], path)
})

t.test('what ships with the gateway is little, and no more of it runs while it is installed than is known', async t => {
  t.ok(shipped.length > 20 && shipped.length <= 175, `${shipped.length} packages; a new one has to be worth it`)
  // both come with dockerode: one prints a hint about versions, the other compiles what only remote daemons over SSH need
  t.strictSame(shipped.filter(([, { hasInstallScript }]) => hasInstallScript === true).map(([path]) => path), ['node_modules/protobufjs', 'node_modules/ssh2'])
})
