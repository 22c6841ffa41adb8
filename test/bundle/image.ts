/*
 * Makes a container image of what was built. `npm run image -- --help` says how.
 */

import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { pack as packTar, type Pack } from 'tar-stream'
import { root } from '../repository.js'
import { packageFiles, treeFiles } from './release.js'

const HELP = `Usage: npm run image -- [options]

  --tag <name>      what the image is called (default: svc:<version>)
  --base <image>    what it stands on (default: scratch, with this machine's
                    Node and the libraries that it needs; any Linux image
                    with glibc and Node 20.19 or newer, such as
                    gcr.io/distroless/nodejs22-debian12)
  --builder <name>  docker or podman (default: docker)
`

type Files = Readonly<Record<string, string | { readonly path: string }>>

/** Root of an image that has nothing else: Node, `env` for programs that ask for it by name, and their libraries. */
function machineFiles (): Files {
  if (process.platform !== 'linux') throw new Error('an image on scratch takes this machine\'s Node, which is none for Linux: name a base that has one, --base gcr.io/distroless/nodejs22-debian12')
  const files: Record<string, string | { readonly path: string }> = {
    'usr/bin/node': { path: realpathSync(process.execPath) },
    'etc/passwd': 'root:x:0:0:root:/:/sbin/nologin\nsvc:x:65532:65532:svc:/data:/sbin/nologin\n',
    'etc/group': 'root:x:0:\nsvc:x:65532:\n',
    'etc/nsswitch.conf': 'hosts: files dns\n'
  }
  if (existsSync('/usr/bin/env')) files['usr/bin/env'] = { path: '/usr/bin/env' }
  for (const certificates of ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt']) {
    if (existsSync(certificates)) files['etc/ssl/certs/ca-certificates.crt'] = { path: realpathSync(certificates) }
  }
  const programs = ['usr/bin/node', 'usr/bin/env'].flatMap(name => typeof files[name] === 'object' ? [files[name].path] : [])
  for (const library of librariesOf([...programs, ...nativeModules()])) files[library.slice(1)] = { path: realpathSync(library) }
  return files
}

/** What the loader opens for these files, the loader too, by the names that it asks for. */
function librariesOf (paths: readonly string[]): ReadonlySet<string> {
  const found = new Set<string>()
  for (const path of paths) {
    const told = execFileSync('ldd', [path], { encoding: 'utf8' })
    for (const [, library] of told.matchAll(/(?:=> |^\s*)(\/\S+) \(0x/gm)) found.add(library!)
  }
  return found
}

function nativeModules (): string[] {
  return Object.entries(imagePackages()).flatMap(([path, file]) => path.endsWith('.node') && typeof file === 'object' ? [file.path] : [])
}

/** Without what was made for other systems: packages bring all of them. */
function imagePackages (): Files {
  const { arch } = process
  return Object.fromEntries(Object.entries(packageFiles()).filter(([path]) => {
    if (/\/@libsql\/[^/]+-musl\/|\/build\/Release\/obj|\.o$|\.a$/.test(path)) return false
    const [, target] = /\/prebuilds\/([^/]+)\//.exec(path) ?? []
    return target === undefined || target === `linux-${arch}`
  }))
}

/** Times and owners are fixed, so the same sources make the same layers. */
function add (tar: Pack, name: string, file: string | { readonly path: string }): void {
  const isText = typeof file === 'string'
  const mode = !isText && (statSync(file.path).mode & 0o100) !== 0 ? 0o755 : 0o644
  tar.entry({ name, mode, mtime: new Date(0) }, isText ? file : readFileSync(file.path))
}

function contextOf (version: string, base: string): Pack {
  const tar = packTar()
  const tree: Files = {
    ...imagePackages(), ...treeFiles(version), 'LICENSE': { path: join(root, 'LICENSE') }, 'README.md': { path: join(root, 'README.md') }
  }
  const files: Files = {
    ...base === 'scratch' ? machineFiles() : {},
    ...Object.fromEntries(Object.entries(tree).map(([path, file]) => [`opt/svc/${path}`, file]))
  }
  add(tar, 'Dockerfile', { path: join(root, 'deploy', 'Dockerfile') })
  add(tar, 'data/.keep', '')
  for (const [path, file] of Object.entries(files).toSorted(([a], [b]) => a < b ? -1 : 1)) add(tar, `root/${path}`, file)
  tar.entry({ name: 'root/tmp/', type: 'directory', mode: 0o1777, mtime: new Date(0) })
  tar.entry({ name: 'root/usr/bin/svc', type: 'symlink', linkname: '/opt/svc/dist/lib/svc.cjs', mtime: new Date(0) })
  tar.finalize()
  return tar
}

async function build (builder: string, tag: string, base: string, context: Pack): Promise<void> {
  const child = spawn(builder, ['build', '--quiet', '--build-arg', `BASE=${base}`, '--tag', tag, '-'], { stdio: ['pipe', 'ignore', 'inherit'] })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', () => reject(new Error(`${builder} cannot be run: install it, or name another with --builder`)))
    child.once('close', resolve)
  })
  // a builder that ends early says why itself
  child.stdin.on('error', () => {})
  context.pipe(child.stdin)
  const code = await ended
  if (code !== 0) throw new Error(`${builder} build ended with ${code}`)
}

async function main (): Promise<void> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ options: { tag: text, base: text, builder: text, help: { type: 'boolean' } } })
  if (values.help === true) return void process.stdout.write(HELP)
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const { tag = `svc:${version}`, base = 'scratch', builder = 'docker' } = values
  await build(builder, tag, base, contextOf(version, base))
  process.stdout.write(`The image ${tag} is there. Try it: ${builder} run --rm --read-only --tmpfs /tmp -v svc:/data -p 127.0.0.1:8080:8080 ${tag}\n`)
}

await main().catch((error: unknown) => {
  process.stderr.write(`Error: ${error instanceof Error ? error.message : String(error)}\n\`npm run image -- --help\` says what it takes.\n`)
  process.exitCode = 1
})
