import { createHash, generateKeyPairSync, randomBytes, sign, type KeyPairKeyObjectResult } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { fulcioHandler, initializeCA, initializeTLog, rekorHandler } from '@sigstore/mock'
import t, { type Test } from 'tap'
import { pack as packTar } from 'tar-stream'
import type { Clock } from '../../../../kernel/contract/index.js'
import { downloadArchive } from '../../../../plugins/services/updates/download.js'
import type { Pins } from '../../../../plugins/services/updates/pins.js'
import { verifySignature } from '../../../../plugins/services/updates/signature.js'
import { ReleaseTransport } from '../../../../plugins/services/updates/transport.js'
import { migratedFiles, objection, type TrialReport } from '../../../../plugins/services/updates/trial.js'
import { unpackRelease } from '../../../../plugins/services/updates/unpack.js'
import { bundleOf } from '../../../bundle/release.js'
import { readOnly, smallDisk } from '../../../mounts.js'
import { channelServer, send, type ChannelServer } from './channel-server.js'

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
const noPins: Pins = { releasesUrl: '', signerIdentity: '', signerIssuer: '', publicKey: null, trustedRoot: null }

interface Getting {
  readonly folder: string
  readonly digest: string
  readonly limitBytes?: number
  readonly signal?: AbortSignal
}

/** Downloads `/archive` of the channel; waits between connections take no time. */
async function get (t: Test, { url }: ChannelServer, getting: Getting): Promise<Buffer> {
  const { limitBytes = 1e9, signal = new AbortController().signal, ...job } = getting
  const transport = new ReleaseTransport(() => undefined)
  t.teardown(() => transport.close())
  const setTimer: Clock['setTimer'] = (_ms, fn) => {
    setImmediate(fn)
    return { cancel: () => {} }
  }
  const clock = { monotonic: () => 0, now: () => 0, setTimer }
  const place = { url: new URL(`${url}/archive`), limitBytes, signal, onBytes: () => {} }
  const path = await downloadArchive({ transport, clock }, { ...place, ...job })
  return readFileSync(path)
}

/** Resolves once so many bytes of an archive are on the disk. */
async function whenThere (folder: string, bytes: number): Promise<void> {
  while ((statSync(join(folder, 'archive.part'), { throwIfNoEntry: false })?.size ?? 0) < bytes) await nextTurn()
}

t.test('a download goes on where it was cut off, also in another run, and never mixes two archives', async t => {
  const channel = await channelServer(t)
  const bytes = randomBytes(300_000)
  const ranges: Array<string | undefined> = []
  const folder = t.testdir()
  let cuts = 2
  channel.files.set('/archive', (request, response) => {
    ranges.push(request.headers.range)
    if (cuts-- <= 0) return send(bytes, request, response)
    const from = Number(/\d+/.exec(request.headers.range ?? '0')![0])
    response.writeHead(from === 0 ? 200 : 206, { 'content-length': bytes.length - from, 'etag': '"one"', 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` })
    response.write(bytes.subarray(from, from + 100_000))
    void whenThere(folder, from + 100_000).then(() => response.destroy())
  })
  t.ok((await get(t, channel, { folder, digest: sha256(bytes) })).equals(bytes))
  t.strictSame(ranges, [undefined, 'bytes=100000-', 'bytes=200000-'])

  // a run that is ended in the middle, and then the next one
  const [later, stop] = [join(folder, 'later'), new AbortController()]
  channel.files.set('/archive', (_request, response) => {
    response.writeHead(200, { 'content-length': bytes.length, 'etag': '"one"' }).write(bytes.subarray(0, 150_000))
    void whenThere(later, 150_000).then(() => stop.abort(new Error('the gateway stops')))
  })
  await t.rejects(get(t, channel, { folder: later, digest: sha256(bytes), signal: stop.signal }), { message: 'the gateway stops' })
  ranges.length = 0
  channel.files.set('/archive', (request, response) => {
    ranges.push(request.headers.range)
    send(bytes, request, response)
  })
  t.ok((await get(t, channel, { folder: later, digest: sha256(bytes) })).equals(bytes))
  t.strictSame(ranges, ['bytes=150000-'])

  const other = randomBytes(200_000)
  writeFileSync(join(later, 'archive.part'), bytes.subarray(0, 1000))
  writeFileSync(join(later, 'archive.json'), JSON.stringify({ digest: sha256(other), etag: null }))
  channel.files.set('/archive', other)
  t.ok((await get(t, channel, { folder: later, digest: sha256(other) })).equals(other), 'damaged bytes of an earlier run cost one more download')
})

t.test('an archive of another digest, one that is too large, and a server that has nothing are refused', async t => {
  const channel = await channelServer(t)
  const bytes = randomBytes(50_000)
  channel.files.set('/archive', bytes)
  const folder = t.testdir()
  await t.rejects(get(t, channel, { folder, digest: 'a'.repeat(64) }), { code: 'system.update_verify_failed', message: /its SHA-256 differs/ })
  t.notOk(readdirSync(folder).includes('archive.part'), 'what is wrong is not kept')
  await t.rejects(get(t, channel, { folder, digest: sha256(bytes), limitBytes: 49_999 }), { code: 'system.update_download_failed', message: /50000 bytes or more, and 49999 are allowed/ })
  channel.files.set('/archive', (_request, response) => { response.writeHead(200).end(bytes) })
  await t.rejects(get(t, channel, { folder, digest: sha256(bytes), limitBytes: 49_999 }), { code: 'system.update_download_failed' }, 'its size need not be told')
  channel.files.delete('/archive')
  await t.rejects(get(t, channel, { folder, digest: sha256(bytes) }), { code: 'system.update_download_failed', message: /answers 404/ })
  const disk = smallDisk(t, 1)
  if (disk === null) return void t.comment('SKIPPED: nothing may be mounted here')
  const large = randomBytes(3_000_000)
  channel.files.set('/archive', large)
  await t.rejects(get(t, channel, { folder: join(disk, 'cache'), digest: sha256(large) }), { code: 'system.update_download_failed', message: /the disk of .* is full/ })
  const archive = join(folder, 'large.tar.gz')
  writeFileSync(archive, await tarOf({ 'svc-9.0.0/package.json': about('9.0.0'), 'svc-9.0.0/big': large.toString('base64') }))
  rmSync(join(disk, 'cache'), { recursive: true })
  await t.rejects(unpack(disk, archive, '9.0.0'), { code: 'system.update_extract_failed', message: /the disk of .* is full/ })
  t.strictSame(readdirSync(disk), [], 'nothing is left of it')
})

interface Odd { readonly name: string, readonly type?: 'symlink' | 'link' | 'character-device' | 'fifo', readonly linkname?: string, readonly text?: string }

const about = (version: string): string => JSON.stringify({ name: 'svc-gateway', version })

async function tarOf (files: Readonly<Record<string, string>>, odd: readonly Odd[] = []): Promise<Buffer> {
  const tar = packTar()
  for (const [name, text] of Object.entries(files)) tar.entry({ name, mode: name.endsWith('.sh') ? 0o4777 : 0o666 }, text)
  for (const { text, ...header } of odd) {
    if (header.type === undefined) tar.entry(header, text ?? '')
    else tar.entry(header)
  }
  tar.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of tar) chunks.push(chunk as Buffer)
  return gzipSync(Buffer.concat(chunks))
}

function unpack (base: string, archive: string, version: string, limitBytes = 10_000_000): Promise<string> {
  return unpackRelease({ archive, base, version, limitBytes, signal: new AbortController().signal })
}

t.test('an archive is unpacked beside and takes its place whole; one that would lead out, or is of another version, leaves nothing', async t => {
  const base = t.testdir({ outside: 'mine' })
  const archive = join(t.testdirName, 'a.tar.gz')
  const good = { 'svc-9.0.0/package.json': about('9.0.0'), 'svc-9.0.0/bin/run.sh': '#!/bin/sh\n', 'svc-9.0.0/lib/a.js': 'a' }
  writeFileSync(archive, await tarOf(good))
  t.equal(await unpack(base, archive, '9.0.0'), 'svc-9.0.0')
  t.equal(readFileSync(join(base, 'svc-9.0.0/lib/a.js'), 'utf8'), 'a')
  t.equal(statSync(join(base, 'svc-9.0.0/bin/run.sh')).mode & 0o7777, 0o755, 'no bits beyond those of a program')
  t.equal(statSync(join(base, 'svc-9.0.0/lib/a.js')).mode & 0o7777, 0o644)
  await unpack(base, archive, '9.0.0')
  t.strictSame(readdirSync(base).filter(name => name.startsWith('svc-')).sort(), ['svc-9.0.0', 'svc-9.0.0.stale'], 'an earlier one makes room')

  const cases: ReadonlyArray<readonly [odd: Odd, why: RegExp]> = [
    [{ name: '../outside', text: 'x' }, /leads out of it/],
    [{ name: 'svc-9.0.0/../../outside', text: 'x' }, /leads out of it/],
    [{ name: '/etc/svc-was-here', text: 'x' }, /leads out of it/],
    [{ name: 'svc-9.0.0/a\\..\\b', text: 'x' }, /leads out of it/],
    [{ name: 'svc-9.0.0/link', type: 'symlink', linkname: '../../outside' }, /is a symbolic link/],
    [{ name: 'svc-9.0.0/hard', type: 'link', linkname: 'svc-9.0.0/lib/a.js' }, /is a link/],
    [{ name: 'svc-9.0.0/null', type: 'character-device' }, /is a character-device/],
    [{ name: 'svc-9.0.0/pipe', type: 'fifo' }, /is a fifo/],
    [{ name: 'svc-9.0.0/lib/a.js', text: 'again' }, /EEXIST/]
  ]
  for (const [odd, why] of cases) {
    writeFileSync(archive, await tarOf(good, [odd]))
    await t.rejects(unpack(base, archive, '9.0.0'), { code: 'system.update_extract_failed', message: why }, odd.name)
  }
  writeFileSync(archive, await tarOf({ ...good, 'svc-9.0.0/bomb': '0'.repeat(2_000_000) }))
  await t.rejects(unpack(base, archive, '9.0.0', 1_000_000), { code: 'system.update_extract_failed', message: /more than may be unpacked/ })
  writeFileSync(archive, randomBytes(1000))
  await t.rejects(unpack(base, archive, '9.0.0'), { code: 'system.update_extract_failed' })
  writeFileSync(archive, await tarOf(good))
  await t.rejects(unpack(base, archive, '9.1.0'), { code: 'system.update_verify_failed', message: /holds 9\.0\.0, and the manifest says 9\.1\.0/ }, 'an old archive under a new version')
  mkdirSync(join(base, 'svc-9.1.0'))
  writeFileSync(join(base, 'svc-9.1.0/notes.txt'), 'mine')
  writeFileSync(archive, await tarOf({ 'x/package.json': about('9.1.0') }))
  await t.rejects(unpack(base, archive, '9.1.0'), { code: 'system.update_extract_failed', message: /exists and is not a release/ })
  t.equal(readFileSync(join(base, 'svc-9.1.0/notes.txt'), 'utf8'), 'mine', 'a folder of someone else stays')
  t.equal(readFileSync(join(base, 'outside'), 'utf8'), 'mine')
  t.notOk(readdirSync(base).some(name => name.endsWith('.new')), 'nothing half-unpacked is left')
  writeFileSync(archive, await tarOf(good))
  const release = readOnly(t, base)
  if (release === null) return void t.comment('SKIPPED: nothing may be mounted here')
  await t.rejects(unpack(base, archive, '9.0.0'), { code: 'system.update_extract_failed', message: /read-only file system/ })
  release()
})

const pemOf = (t: Test): { readonly key: string, readonly publicKey: string } => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256', publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } })
  const folder = mkdtempSync(join(tmpdir(), 'svc-key-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'key.pem'), pair.publicKey)
  return { key: pair.privateKey, publicKey: join(folder, 'key.pem') }
}

t.test('a signature by a key is taken from the key that the installation names, and from no other', async t => {
  const archive = randomBytes(10_000)
  const [mine, other] = [pemOf(t), pemOf(t)]
  const bundle = bundleOf(archive, mine.key)
  const pins = { ...noPins, publicKey: mine.publicKey }
  t.match(await verifySignature(archive, bundle, pins), /the key .*key\.pem/)
  const refused = { code: 'system.update_verify_failed' }
  await t.rejects(verifySignature(archive, bundle, { ...noPins, publicKey: other.publicKey }), refused, 'another key')
  await t.rejects(verifySignature(Buffer.concat([archive, archive]), bundle, pins), refused, 'another archive')
  await t.rejects(verifySignature(archive, '{}', pins), refused, 'no bundle')
  await t.rejects(verifySignature(archive, bundle, noPins), { ...refused, message: /does not say who signs releases/ })
  await t.rejects(verifySignature(archive, bundle, { ...noPins, signerIdentity: '.*' }), { ...refused, message: /a key signed it, but no public key is configured/ })
  await t.rejects(verifySignature(archive, bundle, { ...noPins, publicKey: '/nonexistent.pem' }), { ...refused, message: /cannot be read/ })
})

/** A log of certificates: that of the mock leaves out the length of its one entry, which the library wants to see. */
function certificateLog (): NonNullable<Parameters<typeof initializeCA>[1]> {
  const { privateKey, publicKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const publicKey = key.export({ type: 'spki', format: 'der' })
  const logID = createHash('sha256').update(publicKey).digest()
  const sized = (bytes: Buffer, width: number): Buffer => {
    const length = Buffer.alloc(width)
    length.writeUIntBE(bytes.length, 0, width)
    return Buffer.concat([length, bytes])
  }
  return {
    publicKey,
    logID,
    log: (certificate, issuerID) => {
      const der = Buffer.from(certificate)
      // a certificate is a sequence whose first member is what is signed
      const headOf = (at: number): number => 2 + (der[at + 1]! < 0x80 ? 0 : der[at + 1]! & 0x7f)
      const start = headOf(0)
      const length = der[start + 1]! < 0x80 ? der[start + 1]! : der.readUIntBE(start + 2, der[start + 1]! & 0x7f)
      const signed = der.subarray(start, start + headOf(start) + length)
      const time = Buffer.alloc(8)
      time.writeBigUInt64BE(BigInt(Date.now()))
      const [none, entry] = [Buffer.from([0, 0]), Buffer.from([0, 1])]
      const signature = sign('sha256', Buffer.concat([none, time, entry, Buffer.from(issuerID), sized(signed, 3), none]), privateKey)
      const proof = sized(Buffer.concat([Buffer.from([0]), logID, time, none, Buffer.from([4, 3]), sized(signature, 2)]), 2)
      return Promise.resolve(new Uint8Array(proof).buffer)
    }
  }
}

/** Its name is in what it signs. */
const LOG = 'https://rekor.sigstore.dev'

interface TestSigstore {
  /** File with its trusted root. */
  readonly root: string
  /** A bundle for an archive, as the workflow of that name makes one. */
  readonly signAs: (subject: string, issuer: string, archive: Buffer) => Promise<string>
}

interface LogEntry {
  readonly body: string
  readonly integratedTime: number
  readonly logID: string
  readonly logIndex: number
  readonly verification: { readonly signedEntryTimestamp: string, readonly inclusionProof?: LogProof }
}

interface Issued { readonly signedCertificateEmbeddedSct: { readonly chain: { readonly certificates: readonly string[] } } }

interface LogProof {
  readonly logIndex: number
  readonly rootHash: string
  readonly treeSize: number
  readonly hashes: readonly string[]
  readonly checkpoint: string
}

/** A Sigstore of the test: who is named signs an archive as a workflow does, without a key of their own. */
async function testSigstore (t: Test): Promise<TestSigstore> {
  const pair = (): KeyPairKeyObjectResult => generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ctLog = certificateLog()
  const ca = await initializeCA(pair(), ctLog)
  const tlog = await initializeTLog(LOG, pair())
  const log = (publicKey: Buffer, id: Buffer): object => ({
    baseUrl: LOG, hashAlgorithm: 'SHA2_256', logId: { keyId: id.toString('base64') },
    publicKey: { rawBytes: publicKey.toString('base64'), keyDetails: 'PKIX_ECDSA_P256_SHA_256', validFor: { start: '2020-01-01T00:00:00Z' } }
  })
  const root = join(mkdtempSync(join(tmpdir(), 'svc-root-')), 'root.json')
  t.teardown(() => rmSync(join(root, '..'), { recursive: true }))
  writeFileSync(root, JSON.stringify({
    mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
    tlogs: [log(tlog.publicKey, createHash('sha256').update(tlog.publicKey).digest())],
    ctlogs: [log(ctLog.publicKey, ctLog.logID)],
    certificateAuthorities: [{ certChain: { certificates: [{ rawBytes: ca.rootCertificate.toString('base64') }] }, validFor: { start: '2020-01-01T00:00:00Z' } }],
    timestampAuthorities: []
  }))
  const fulcio = fulcioHandler(ca)
  const rekor = rekorHandler(tlog)
  return {
    root,
    signAs: async (subject, issuer, archive) => {
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const publicPem = own.publicKey.export({ type: 'spki', format: 'pem' }) as string
      const token = ['{}', JSON.stringify({ sub: subject, iss: issuer }), 'x'].map(part => Buffer.from(part).toString('base64url')).join('.')
      const issued = await fulcio.fn(JSON.stringify({
        credentials: { oidcIdentityToken: token }, publicKeyRequest: { publicKey: { algorithm: 'ECDSA', content: publicPem }, proofOfPossession: '' }
      }))
      if (issued.statusCode !== 201) throw new Error(String(issued.response))
      const { signedCertificateEmbeddedSct: { chain } } = JSON.parse(issued.response as string) as Issued
      const [leaf] = chain.certificates
      const signature = sign('sha256', archive, own.privateKey).toString('base64')
      const logged = await rekor.fn(JSON.stringify({
        apiVersion: '0.0.1', kind: 'hashedrekord',
        spec: { signature: { content: signature, publicKey: { content: Buffer.from(leaf!).toString('base64') } }, data: { hash: { algorithm: 'sha256', value: sha256(archive) } } }
      }))
      if (logged.statusCode !== 201) throw new Error(String(logged.response))
      const [entry] = Object.values(JSON.parse(logged.response as string) as Record<string, LogEntry>)
      const proof = entry!.verification.inclusionProof
      const hex = (text: string): string => Buffer.from(text, 'hex').toString('base64')
      return JSON.stringify({
        mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
        verificationMaterial: {
          certificate: { rawBytes: leaf!.replace(/-----[^-]+-----|\s/g, '') },
          tlogEntries: [{
            logIndex: String(entry!.logIndex), logId: { keyId: hex(entry!.logID) }, kindVersion: { kind: 'hashedrekord', version: '0.0.1' },
            integratedTime: String(entry!.integratedTime), canonicalizedBody: entry!.body,
            inclusionPromise: { signedEntryTimestamp: entry!.verification.signedEntryTimestamp },
            ...(proof === undefined ? {} : {
              inclusionProof: {
                logIndex: String(proof.logIndex), rootHash: hex(proof.rootHash), treeSize: String(proof.treeSize),
                hashes: proof.hashes.map(hex), checkpoint: { envelope: proof.checkpoint }
              }
            })
          }],
          timestampVerificationData: { rfc3161Timestamps: [] }
        },
        messageSignature: { messageDigest: { algorithm: 'SHA2_256', digest: Buffer.from(sha256(archive), 'hex').toString('base64') }, signature }
      })
    }
  }
}

t.test('a signature without a key is taken from the identity and the issuer that the installation names', async t => {
  const archive = randomBytes(10_000)
  const { root, signAs } = await testSigstore(t)
  const [issuer, workflow] = ['https://token.example', 'https://forge.example/svc/.github/workflows/release.yml@refs/tags/v1.0.0']
  const bundle = await signAs(workflow, issuer, archive)
  const pins: Pins = { ...noPins, trustedRoot: root, signerIssuer: issuer, signerIdentity: 'https://forge\\.example/svc/\\.github/workflows/release\\.yml@refs/tags/v.*' }
  t.equal(await verifySignature(archive, bundle, pins), workflow)
  const refused = { code: 'system.update_verify_failed' }
  await t.rejects(verifySignature(archive, bundle, { ...pins, signerIdentity: 'https://forge\\.example/svc' }), refused, 'the beginning of an identity is another one')
  await t.rejects(verifySignature(archive, bundle, { ...pins, signerIssuer: 'https://other.example' }), refused, 'another issuer')
  await t.rejects(verifySignature(randomBytes(10_000), bundle, pins), refused, 'another archive')
  await t.rejects(verifySignature(archive, bundle, { ...pins, trustedRoot: null }), refused, 'the public Sigstore knows nothing of it')
  await t.rejects(verifySignature(archive, bundle, { ...pins, publicKey: pemOf(t).publicKey }), { ...refused, message: /a certificate signed it, but a public key is configured/ })
  const { verificationMaterial, ...rest } = JSON.parse(bundle) as { verificationMaterial: Record<string, unknown> }
  await t.rejects(verifySignature(archive, JSON.stringify({ ...rest, verificationMaterial: { ...verificationMaterial, tlogEntries: [] } }), pins), refused, 'no entry in the log')
  const stranger = await testSigstore(t)
  await t.rejects(verifySignature(archive, await stranger.signAs(workflow, issuer, archive), pins), refused, 'another Sigstore')
})

t.test('a release that cannot read, migrate or load what this one has is not switched to', async t => {
  const fine: TrialReport = { version: '9.0.0', config: { ok: true, problems: [] }, database: { ok: true, from: 4, to: 5, message: null }, databases: [], plugins: [{ name: 'mine', ok: true, why: null }, { name: 'broken', ok: false, why: 'no such file' }] }
  t.equal(objection(fine, new Set(['mine'])), null, 'a plugin that is down already may stay down')
  t.equal(objection(fine, new Set(['broken'])), '9.0.0 cannot load broken (no such file)')
  t.equal(objection({ ...fine, config: { ok: false, problems: ['svc.toml: meta.schema_version is 9'] } }, new Set()), '9.0.0 cannot read this configuration: svc.toml: meta.schema_version is 9')
  t.equal(objection({ ...fine, database: { ok: false, from: 4, to: null, message: 'no such column' } }, new Set()), '9.0.0 cannot take over the state database: no such column')
  const board = { plugin: 'board', file: 'plugin-state/board/board.db', ok: false, changed: false, message: 'a newer release wrote it' }
  t.equal(objection({ ...fine, databases: [board] }, new Set(['board'])), '9.0.0 cannot take over the database of board: a newer release wrote it')
  t.equal(objection({ ...fine, databases: [board] }, new Set()), null, 'of a plugin that does not run it may stay as it is')
  const paths = { database: '/state/svc.db', state: '/state' }
  const ledger = { plugin: 'agent-budgets', file: 'plugin-state/agent-budgets/ledger.db', ok: true, changed: false, message: null }
  t.strictSame(migratedFiles({ ...fine, databases: [{ ...board, ok: true, changed: true }, ledger] }, paths).filter(file => file.endsWith('.db')),
    ['/state/svc.db', '/state/plugin-state/board/board.db'], 'what is migrated is kept for a return')
  t.strictSame(migratedFiles({ ...fine, database: { ...fine.database, to: 4 }, databases: [ledger] }, paths), [])
})
