/*
 * Makes a release of what was built: an archive with all that it needs to run, a manifest for its channel, and a bundle with the
 * signature. `npm run release -- --help` says how.
 */

import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createGzip } from 'node:zlib'
import { pack as packTar } from 'tar-stream'
import { root } from '../repository.js'
import { bundleFolder } from './fresh.js'

const HELP = `Usage: npm run release -- [options]

  --out <folder>          where archive, manifests and bundle go
                          (default: dist/release)
  --channel <name>        stable or nightly (default: stable)
  --version <version>     in place of that of package.json
  --key <file>            private key (PEM) to sign with; without one, sign the
                          archive yourself: cosign sign-blob --bundle
                          svc-<version>.bundle.json svc-<version>.tar.gz
  --releases-url <url>    where this release looks for others
  --signer-identity <re>  whose certificates this release trusts, as a regular
                          expression
  --signer-issuer <url>   who vouches for the signer
  --public-key <file>     key (PEM) that this release trusts in place of
                          certificates
  --notes-url <url>       what changed, for people
  --upgrade-from <range>  versions that it updates from
`

export interface ReleaseOptions {
  readonly out: string
  readonly channel: string
  readonly version: string
  /** Files of the tree by path, as text or as where they are. */
  readonly files: Readonly<Record<string, string | { readonly path: string }>>
  /** PEM; null leaves the signature to someone else. */
  readonly key: string | null
  /** Laid over the manifest. */
  readonly fields: Readonly<Record<string, unknown>>
}

/** Writes `svc-<version>.tar.gz`, its bundle, `<channel>-<version>.json` and, last, `<channel>.json`. */
export async function writeRelease ({ out, channel, version, files, key, fields }: ReleaseOptions): Promise<void> {
  mkdirSync(out, { recursive: true })
  const name = `svc-${version}`
  const archive = await archiveOf(name, files)
  writeFileSync(join(out, `${name}.tar.gz`), archive)
  if (key !== null) writeFileSync(join(out, `${name}.bundle.json`), bundleOf(archive, key))
  const manifest = JSON.stringify({
    _schema: 'svc.releases.v1',
    version,
    channel,
    url: `${name}.tar.gz`,
    bundle_url: `${name}.bundle.json`,
    digest_sha256: createHash('sha256').update(archive).digest('hex'),
    size: archive.length,
    released_at: new Date().toISOString(),
    ...fields
  }, null, 2)
  for (const file of [`${channel}-${version}.json`, `${channel}.json`]) writeFileSync(join(out, file), `${manifest}\n`)
}

/** What runs, without what only people in a checkout need. */
export function treeFiles (version: string): Record<string, string | { readonly path: string }> {
  const about = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown>
  const files: Record<string, string | { readonly path: string }> = { 'package.json': JSON.stringify({ ...about, version }, null, 2) }
  for (const path of below(bundleFolder)) if (!path.endsWith('.map')) files[relative(root, path)] = { path }
  return files
}

async function archiveOf (name: string, files: ReleaseOptions['files']): Promise<Buffer> {
  const tar = packTar()
  for (const [path, file] of Object.entries(files).toSorted(([a], [b]) => a < b ? -1 : 1)) {
    const isText = typeof file === 'string'
    const mode = !isText && (statSync(file.path).mode & 0o100) !== 0 ? 0o755 : 0o644
    tar.entry({ name: `${name}/${path}`, mode, mtime: new Date(0) }, isText ? file : readFileSync(file.path))
  }
  tar.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of (tar as unknown as NodeJS.ReadableStream).pipe(createGzip({ level: 6 }))) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** A Sigstore bundle of a signature by a key, as `cosign sign-blob --key --bundle` makes one. */
export function bundleOf (archive: Buffer, pem: string): string {
  const key = createPrivateKey(pem)
  if (key.asymmetricKeyType !== 'ec' && key.asymmetricKeyType !== 'rsa') throw new Error('sign with an EC or RSA key: openssl ecparam -genkey -name prime256v1 -noout -out key.pem')
  const hint = createHash('sha256').update(createPublicKey(key).export({ type: 'spki', format: 'der' })).digest('base64')
  return JSON.stringify({
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: { publicKey: { hint }, tlogEntries: [], timestampVerificationData: { rfc3161Timestamps: [] } },
    messageSignature: {
      messageDigest: { algorithm: 'SHA2_256', digest: createHash('sha256').update(archive).digest('base64') },
      signature: sign('sha256', archive, key).toString('base64')
    }
  })
}

/** Packages with all that they need, as npm laid them: what the bundle leaves outside, and what is asked for by its name. */
export function packageFiles (): Record<string, { readonly path: string }> {
  const files: Record<string, { readonly path: string }> = {}
  const seen = new Set<string>()
  const take = (folder: string): void => {
    if (seen.has(folder)) return
    seen.add(folder)
    for (const path of below(folder)) if (!/\.(map|md|ts)$|\/(test|tests|docs|examples?|benchmarks?)\//.test(path)) files[relative(root, path)] = { path }
    const { dependencies = {}, optionalDependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, Record<string, string>>
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const found = [join(folder, 'node_modules', name), join(root, 'node_modules', name)].find(place => existsSync(join(place, 'package.json')))
      if (found !== undefined) take(found)
    }
  }
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: Record<string, string> }
  for (const name of Object.keys(dependencies)) take(join(root, 'node_modules', name))
  return files
}

function below (folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .filter(path => !relative(folder, path).split('/').includes('.bin'))
}

async function main (): Promise<void> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    options: {
      'out': text, 'channel': text, 'version': text, 'key': text, 'releases-url': text, 'signer-identity': text, 'signer-issuer': text,
      'public-key': text, 'notes-url': text, 'upgrade-from': text, 'help': { type: 'boolean' }
    }
  })
  if (values.help === true) return void process.stdout.write(HELP)
  const { version: own } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const { out = join(root, 'dist', 'release'), channel = 'stable', version = own } = values
  const publicKey = values['public-key']
  const pins = {
    releases_url: values['releases-url'], signer_identity: values['signer-identity'], signer_issuer: values['signer-issuer'],
    ...(publicKey === undefined ? {} : { public_key: 'release.pem' })
  }
  const files = {
    ...packageFiles(),
    ...treeFiles(version),
    'README.md': { path: join(root, 'README.md') },
    'LICENSE': { path: join(root, 'LICENSE') },
    'release.json': `${JSON.stringify(pins, null, 2)}\n`,
    ...(publicKey === undefined ? {} : { 'release.pem': { path: publicKey } })
  }
  const fields = {
    platforms: [`${process.platform}-${process.arch}`],
    ...(pins.signer_identity === undefined ? {} : { signer_identity: pins.signer_identity }),
    ...(pins.signer_issuer === undefined ? {} : { signer_issuer: pins.signer_issuer }),
    ...(values['notes-url'] === undefined ? {} : { notes_url: values['notes-url'] }),
    ...(values['upgrade-from'] === undefined ? {} : { upgrade_from: values['upgrade-from'] })
  }
  await writeRelease({ out, channel, version, files, key: values.key === undefined ? null : readFileSync(values.key, 'utf8'), fields })
  process.stdout.write(`svc ${version} for ${channel} is in ${out}\n`)
  if (values.key === undefined) process.stdout.write(`It is not signed yet: cosign sign-blob --bundle svc-${version}.bundle.json svc-${version}.tar.gz\n`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main().catch((error: unknown) => {
    process.stderr.write(`Error: ${error instanceof Error ? error.message : String(error)}\n\`npm run release -- --help\` says what it takes.\n`)
    process.exitCode = 1
  })
}
