import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from 'smol-toml'
import t from 'tap'
import { z } from 'zod'
import { svcSchema } from '../cli/offline/svc-schema.js'
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

interface Described {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Described>>
}

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> }
const locked = Object.entries(packages).filter(([path, { link }]) => path !== '' && link !== true)
const shipped = locked.filter(([, { dev, optional, peer }]) => dev !== true && optional !== true && peer !== true)

t.test('whatever is installed is the very thing that was locked', async t => {
  t.ok(locked.length > 100)
  t.strictSame(locked.filter(([, { version, integrity }]) => !/^\d+\.\d+\.\d+/.test(String(version)) || !/^sha512-.{88}/.test(String(integrity))), [])
})

t.test('what ships with the gateway is little, and no more of it runs while it is installed than is known', async t => {
  t.ok(shipped.length > 20 && shipped.length <= 192, `${shipped.length} packages; a new one has to be worth it`)
  // all come with dockerode: one prints a hint about versions, the others compile what only remote daemons over SSH need
  const running = locked.filter(([, { dev, hasInstallScript }]) => dev !== true && hasInstallScript === true)
    .map(([path]) => path.slice('node_modules/'.length))
  t.strictSame(running, ['cpu-features', 'protobufjs', 'ssh2'])
  const told = /^- \*\*Dependencies\*\* .*the only exceptions are (.*), which come/m.exec(readFileSync(join(root, '.github/CONTRIBUTING.md'), 'utf8'))!
  t.strictSame([...told[1]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name).sort(), running, 'and CONTRIBUTING.md names them')
})

t.test('the complete svc.toml of the README has every key with its default and its description', async t => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const [, text = ''] = /A complete <code>svc\.toml<\/code>[\s\S]*?```toml\n([\s\S]*?)\n```/.exec(readme) ?? []
  const all = z.toJSONSchema(svcSchema, { io: 'input' }) as Described
  const { plugins: { config: _config, ...plugins }, ...rest } = svcSchema.parse({})
  t.strictSame(JSON.parse(JSON.stringify(parse(text))), { ...rest, plugins })
  t.match(text, /# stop_with_gateway = /, 'and those without one as comments')
  let table: Described | undefined
  const comments: Array<{ readonly key: string, readonly said: string, readonly description: string | undefined }> = []
  for (const line of text.split('\n')) {
    const [, name] = /^\[([\w.]+)\]/.exec(line) ?? []
    if (name !== undefined) table = name.split('.').reduce<Described | undefined>((of, key) => of?.properties?.[key], all)
    const [, key, said] = /^(?:# )?(\w+) = .*?\s# (.+)$/.exec(line) ?? []
    if (key !== undefined) comments.push({ key, said: said!, description: table?.properties?.[key]?.description })
  }
  t.ok(comments.length > 80, `${comments.length} descriptions`)
  t.strictSame(comments.filter(({ said, description }) => said !== description), [], 'described as in the schema')
})

t.test('links between the documents of the repository lead somewhere', async t => {
  const documents = ['README.md', '.github/CONTRIBUTING.md', '.github/SECURITY.md', '.github/CHANGELOG.md', 'kernel/README.md', 'test/README.md', 'plugins/api/README.md']
  const dead = documents.flatMap(path => [...readFileSync(join(root, path), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
    .filter(([, to]) => !existsSync(join(root, dirname(path), to!))).map(([, to]) => `${path} -> ${to}`))
  t.strictSame(dead, [])
})
