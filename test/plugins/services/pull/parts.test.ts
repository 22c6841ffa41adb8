import { mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { modelRowSchema, type JobStore } from '../../../../kernel/contract/index.js'
import { FakeClock } from '../../../../kernel/testing/index.js'
import { pluginConformance } from '../../../../kernel/testing/plugin-conformance.js'
import hubPlugin from '../../../../plugins/services/hub/index.js'
import { hfError, type HubRepo } from '../../../../plugins/services/hub/ref.js'
import libraryPlugin from '../../../../plugins/services/library/index.js'
import { curatedMedia } from '../../../../plugins/services/library/curated-media.js'
import { curatedText } from '../../../../plugins/services/library/curated-text.js'
import { chooseFiles } from '../../../../plugins/services/pull/hub/choice.js'
import { folderOf, placesOf } from '../../../../plugins/services/pull/hub/destination.js'
import { readDisk, spaceRefusal } from '../../../../plugins/services/pull/file/disk.js'
import { pullError } from '../../../../plugins/services/pull/errors.js'
import { FileHashes } from '../../../../plugins/services/pull/file/file-hash.js'
import pullPlugin from '../../../../plugins/services/pull/index.js'
import { Latest } from '../../../../kernel/async/latest.js'
import { Meter } from '../../../../plugins/services/pull/file/meter.js'
import { partBytes, PartFile, partKey, placePart } from '../../../../plugins/services/pull/file/part-file.js'
import { hubRecordSchema, hubSnapshot } from '../../../../plugins/services/pull/record.js'
import type { PullRequest } from '../../../../plugins/services/pull/ref.js'
import { pulledRow } from '../../../../plugins/services/pull/hub/register.js'
import { verdictOn } from '../../../../plugins/services/pull/file/retry.js'
import { sourceOf, type PullSource } from '../../../../plugins/services/pull/hub/source.js'
import { sweepStaging } from '../../../../plugins/services/pull/file/staging.js'
import { Turnstile } from '../../../../plugins/services/pull/file/turnstile.js'
import { patternBytes, sha256Of } from '../hub/fake-hub.js'

for (const { name, run } of pluginConformance(pullPlugin, { beside: [hubPlugin, libraryPlugin] })) {
  t.test(name, async t => {
    await run()
    t.pass('keeps to it')
  })
}

t.test('where a model comes from', async t => {
  const row = (over: object) => ({ id: 'x', ...modelRowSchema.parse({ path: '/m', ...over }) })
  const of = (request: Partial<PullRequest>, over?: object, curated?: (typeof curatedText)[number]) =>
    sourceOf({ model_id: 'x', ...request }, over === undefined ? undefined : row(over), curated)
  const gemma = curatedText.find(({ id }) => id === 'gemma3-4b')!
  const sdxl = curatedMedia.find(({ id }) => id === 'sdxl-turbo')!
  t.match(of({ hf_repo: 'a/b', hf_filename: 'f.gguf' }, { hf_repo: 'c/d' }, gemma), { repo: 'a/b', file: 'f.gguf', tags: ['user-added'], origin: 'add-by-hf', capability: null })
  t.match(of({}, { hf_repo: 'c/d', hf_filename: 'g.gguf' }, gemma), { repo: 'c/d', file: 'g.gguf', origin: 'registry' })
  t.match(of({ hf_filename: 'h.gguf' }, { hf_repo: 'c/d', hf_filename: 'g.gguf' }), { repo: 'c/d', file: 'h.gguf' })
  t.match(of({}, { path: '/m' }, gemma), {
    repo: gemma.hf_repo, mmproj: 'mmproj-model-f16.gguf', capability: 'chat', capabilities: ['chat', 'vision'], tags: ['curated', 'chat', 'vision'], origin: 'curated'
  }, 'a row that knows no repository')
  t.match(of({}, undefined, sdxl), { imageFolder: 'checkpoints', capability: 'image', license: 'sai-nc-community' })
  t.match(of({ model_id: 'org/name' }), { repo: 'org/name', quant: null, file: null })
  t.match(of({ model_id: 'org/name:Q8_0', capabilities: ['embed'] }), { repo: 'org/name', quant: 'Q8_0', capabilities: ['embed'] })
  for (const id of ['name', 'gemma:1b', 'a/b/c', '../x/y']) t.throws(() => of({ model_id: id }), { code: 'model.invalid_source' }, id)
})

const source = (over: Partial<PullSource> = {}): PullSource => ({
  modelId: 'm', repo: 'o/r', file: null, quant: null, revision: 'main', mmproj: null, capability: null, imageFolder: '', capabilities: [], tags: [],
  name: '', license: '', origin: 'add-by-hf', ...over
})
const repo = (...paths: string[]): HubRepo => ({
  id: 'o/r', commit: 'c', gated: false, license: null, tags: [], files: paths.map(path => ({ path, size: 1, sha256: null, gitSha1: null }))
})

t.test('which files of a repository', async t => {
  const names = (over: Partial<PullSource>, ...paths: string[]) => chooseFiles(source(over), repo(...paths)).map(({ file, kind }) => `${kind} ${file.path}`)
  t.same(names({}, 'a.gguf', 'mmproj-a.gguf', 'README.md'), ['model a.gguf'])
  t.same(names({}, 'a-Q8_0.gguf', 'a-Q4_K_M.gguf'), ['model a-Q4_K_M.gguf'])
  t.same(names({ quant: 'q8_0' }, 'a-Q8_0.gguf', 'a-Q4_K_M.gguf'), ['model a-Q8_0.gguf'])
  t.same(names({ quant: 'Q8_0' }, 'Q8_0/a-Q8_0-00002-of-00002.gguf', 'Q8_0/a-Q8_0-00001-of-00002.gguf', 'b-Q8_0x.gguf'),
    ['model Q8_0/a-Q8_0-00001-of-00002.gguf', 'model Q8_0/a-Q8_0-00002-of-00002.gguf'])
  t.same(names({ capabilities: ['chat', 'vision'] }, 'a.gguf', 'mmproj-Q8_0.gguf', 'mmproj-BF16.gguf', 'mmproj-F16.gguf'), ['model a.gguf', 'mmproj mmproj-F16.gguf'])
  t.same(names({ file: 'x/a.gguf', capabilities: ['vision'] }, 'x/a.gguf', 'mmproj-F16.gguf', 'x/mmproj-Q8_0.gguf'), ['model x/a.gguf', 'mmproj x/mmproj-Q8_0.gguf'])
  t.same(names({ capabilities: ['vision'] }, 'a.gguf'), ['model a.gguf'], 'there is none')
  t.same(names({ mmproj: 'p.gguf' }, 'a.gguf', 'p.gguf', 'a-Q4_K_M.gguf'), ['model a-Q4_K_M.gguf', 'mmproj p.gguf'])
})

t.test('files go below the store, never outside it', async t => {
  const places = (over: Partial<PullSource>, paths: readonly string[], existing: readonly string[] = []) =>
    placesOf(source(over), paths.map(path => ({ file: repo(path).files[0]!, kind: /mmproj/.test(path) ? 'mmproj' as const : 'model' as const })), existing)
  t.same(places({}, ['x/a.gguf', 'mmproj-F16.gguf']), ['m/a.gguf', 'm/mmproj-F16.gguf'])
  t.same(places({ capability: 'chat' }, ['x/a-00001-of-00002.gguf', 'x/a-00002-of-00002.gguf', 'mmproj-F16.gguf']),
    ['chat/m/model-00001-of-00002.gguf', 'chat/m/model-00002-of-00002.gguf', 'chat/m/mmproj.gguf'])
  t.same(places({ capability: 'asr' }, ['ggml-tiny.bin']), ['asr/m/model.bin'])
  t.same(places({ capability: 'image', imageFolder: 'checkpoints' }, ['sd.safetensors']), ['checkpoints/sd.safetensors'], 'below the engine\'s models')
  for (const path of ['..', '.hidden.gguf', 'a\\b.gguf', 'a\u0000.gguf', 'a\n.gguf', `${'x'.repeat(300)}.gguf`, 'a/../b.gguf']) {
    t.throws(() => places({}, [path]), { code: 'model.invalid_source' }, JSON.stringify(path))
  }
  t.throws(() => places({}, ['a/M.gguf', 'b/m.gguf']), { code: 'model.invalid_source', message: /two files/ })
  t.equal(folderOf('qwen3-4b', ['other']), 'qwen3-4b')
  t.equal(folderOf('qwen3-4b', ['qwen3-4b']), 'qwen3-4b', 'its own folder')
  t.match(folderOf('qwen3-4b', ['Qwen3-4B']), /^qwen3-4b-[0-9a-f]{8}$/)
  t.match(folderOf('org/a b', []), /^org-a-b-[0-9a-f]{8}$/)
  t.match(folderOf('../..', []), /^model-[0-9a-f]{8}$/)
  t.not(folderOf('org/a', []), folderOf('org-a', []))
  t.not(folderOf('org/a', []), folderOf('org:a', []))
})

t.test('a pull is refused if the disk has too little space', async t => {
  const disk = { device: 1, freeBytes: 100 }
  const refusal = (neededBytes: number, promisedBytes = 0, reserveBytes = 0) => spaceRefusal('/m', disk, { neededBytes, promisedBytes, reserveBytes })
  t.equal(refusal(100), null)
  t.match(refusal(101), { code: 'model.insufficient_disk', status: 507, details: { needed_bytes: 101, free_bytes: 100 } })
  t.match(refusal(50, 51), { message: /other pulls/ })
  t.match(refusal(50, 20, 31), { code: 'model.insufficient_disk' })
  t.equal(refusal(0, 500, 500), null, 'what needs nothing always fits')
  const found = await readDisk(join(t.testdir(), 'not/there/yet'))
  t.ok(found.freeBytes > 0 && found.device > 0)
})

t.test('what to do about a failure', async t => {
  const rules = { maxTries: 4, baseS: 1, random: () => 0.5 }
  const coded = (code: string): Error => Object.assign(new Error(code), { code })
  t.match([1, 2, 3].map(tries => verdictOn(coded('ECONNRESET'), tries, rules)), [1, 2, 4].map(waitS => ({ kind: 'retry', waitS })))
  t.match(verdictOn(coded('ECONNRESET'), 4, rules), { kind: 'fail', error: { code: 'hf.unreachable' } })
  t.match(verdictOn(coded('UND_ERR_BODY_TIMEOUT'), 20, { ...rules, maxTries: 99 }), { kind: 'retry', waitS: 60 }, 'a minute at most')
  t.match(verdictOn(hfError('hf.rate_limited', 'x', { details: { retry_after_s: 30 } }), 1, rules), { kind: 'retry', waitS: 30 })
  t.match(verdictOn(hfError('hf.rate_limited', 'x', { details: { retry_after_s: 90_000 } }), 1, rules), { kind: 'fail', error: { code: 'hf.rate_limited' } })
  t.match(verdictOn(hfError('hf.upstream_error', 'x'), 3, rules), { kind: 'retry' })
  for (const error of [
    ...(['hf.gated', 'hf.token_rejected', 'hf.repo_not_found', 'hf.file_not_found'] as const).map(code => hfError(code, 'x')),
    ...(['pull.checksum_mismatch', 'pull.size_mismatch'] as const).map(code => pullError(code, 'x'))
  ]) t.match(verdictOn(error, 1, rules), { kind: 'fail', error: { code: error.code } }, error.code)
  for (const code of ['ENOSPC', 'EDQUOT']) t.match(verdictOn(coded(code), 1, rules), { kind: 'fail', error: { code: 'model.insufficient_disk' } }, code)
  for (const code of ['EACCES', 'EROFS', 'EIO']) t.match(verdictOn(coded(code), 1, rules), { kind: 'fail', error: { code: 'model.pull_failed' } }, code)
})

t.test('a part file is resumed from what is safely on disk', async t => {
  const folder = t.testdir()
  const identity = { size: 1000, sha256: 'a', gitSha1: null }
  const key = partKey('home', '/m/x.gguf', identity)
  t.match(key, /^[0-9a-f]{24}$/)
  t.not(key, partKey('other home', '/m/x.gguf', identity))
  const bytes = patternBytes(1000)
  const first = await PartFile.take(folder, key, identity, 'boot-1')
  await first.sentBy('"e"')
  await first.append(bytes.subarray(0, 300))
  await first.sync()
  await first.append(bytes.subarray(300, 500))
  await first.close()

  t.equal(await partBytes(folder, key, identity, 'boot-1'), 500, 'killed: all that was written')
  t.equal(await partBytes(folder, key, identity, 'boot-2'), 300, 'the machine went down: what was synced')
  t.equal(await partBytes(folder, key, identity, ''), 300, 'nobody knows: what was synced')
  t.equal(await partBytes(folder, key, { ...identity, sha256: 'b' }, 'boot-1'), 0, 'another content')
  t.equal(await partBytes(folder, key, { ...identity, size: 999 }, 'boot-1'), 0)
  const second = await PartFile.take(folder, key, identity, 'boot-2')
  t.match(second, { offset: 300, etag: '"e"', isComplete: false })
  await second.append(bytes.subarray(300))
  t.ok(second.isComplete)
  await second.close()
  await placePart(folder, key, join(folder, 'deep/in/x.gguf'))
  t.ok(bytes.equals(readFileSync(join(folder, 'deep/in/x.gguf'))))
  t.same(readdirSync(folder), ['deep'])

  const other = partKey('home', '/m/y.gguf', identity)
  symlinkSync(join(folder, 'deep/in/x.gguf'), join(folder, `${other}.part`))
  await t.rejects(PartFile.take(folder, other, identity, 'b'), { code: 'ELOOP' }, 'a link in its place is not followed')
  const third = partKey('home', '/m/z.gguf', identity)
  writeFileSync(join(folder, `${third}.part`), 'left by nobody')
  writeFileSync(join(folder, `${third}.json`), '{ broken')
  const fresh = await PartFile.take(folder, third, identity, 'b')
  t.equal(fresh.offset, 0)
  await fresh.close()
  t.equal(readFileSync(join(folder, `${third}.part`)).length, 0)
})

t.test('what nobody comes back for goes after a day', async t => {
  const store = t.testdir({ '.tmp': {} })
  const now = Date.now()
  const put = (name: string, ageH: number): void => {
    writeFileSync(join(store, '.tmp', name), 'x')
    utimesSync(join(store, '.tmp', name), new Date(now - ageH * 3_600_000), new Date(now - ageH * 3_600_000))
  }
  const [old, young, waiting] = ['a', 'b', 'c'].map(letter => letter.repeat(24))
  for (const [key, age] of [[old, 30], [young, 2], [waiting, 300]] as const) {
    put(`${key!}.part`, age)
    put(`${key!}.json`, age)
  }
  put('somebody-elses.part', 300)
  await sweepStaging(store, new Set([waiting!]), now)
  t.same(readdirSync(join(store, '.tmp')).sort(), [`${young!}.json`, `${young!}.part`, `${waiting!}.json`, `${waiting!}.part`, 'somebody-elses.part'])
  await sweepStaging(join(store, 'nowhere'), new Set(), now)
  mkdirSync(join(store, 'e/.tmp'), { recursive: true })
  await sweepStaging(join(store, 'e'), new Set(), now)
  t.same(readdirSync(join(store, 'e')), [], 'an empty folder goes too')
})

t.test('hashes of files, behind their writers', async t => {
  const hashes = new FileHashes()
  t.teardown(() => hashes.close())
  const bytes = patternBytes(3_000_000)
  const path = join(t.testdir({ x: bytes }), 'x')
  const sha = hashes.follow(path, { sha256: 'expected', size: bytes.length })
  for (const to of [0, 10, 1_500_000, 1_500_000, 3_000_000]) sha.advance(to)
  const git = hashes.follow(path, { sha256: null, size: bytes.length })
  git.advance(bytes.length)
  t.equal(await sha.digest(), sha256Of(bytes))
  const { createHash } = await import('node:crypto')
  t.equal(await git.digest(), createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex'))
  const short = hashes.follow(path, { sha256: 'x', size: 9 })
  short.advance(bytes.length + 1)
  await t.rejects(short.digest(), { message: /shorter/ })
  const missing = hashes.follow(`${path}-not`, { sha256: 'x', size: 9 })
  missing.advance(1)
  await t.rejects(missing.digest(), { code: 'ENOENT' })
  const dropped = hashes.follow(path, { sha256: 'x', size: 9 })
  const digest = t.rejects(dropped.digest(), { message: 'given up' })
  dropped.close()
  dropped.close()
  await digest
  const late = hashes.follow(path, { sha256: 'x', size: 9 })
  const closing = t.rejects(late.digest(), { message: /stopping/ })
  await hashes.close()
  await closing
})

t.test('the rate is measured, progress is thinned out, and pulls wait in line', async t => {
  const clock = new FakeClock()
  const meter = new Meter(clock)
  t.equal(meter.bytesPerSecond, 0)
  for (let i = 0; i < 20; i++) {
    meter.add(500)
    await clock.advance(500)
  }
  t.equal(meter.bytesPerSecond, 1000)
  await clock.advance(8000)
  t.equal(meter.bytesPerSecond, 0, 'what was long ago does not count')

  let value = 0
  const latest = new Latest(clock, 500, () => value)
  const leaver = new AbortController()
  const seen: number[] = []
  const reading = (async () => { for await (const each of latest.follow(leaver.signal, 5000)) seen.push(each) })()
  await clock.advance(0)
  for (value = 1; value <= 3; value++) latest.changed()
  value = 3
  await clock.advance(500)
  await clock.advance(5000)
  t.same(seen, [0, 3, 3, 3].slice(0, seen.length), 'the first at once, the last of many, and a sign of life')
  t.ok(seen.length >= 3)
  value = 9
  latest.close()
  await reading
  t.equal(seen.at(-1), 9)
  const after: number[] = []
  for await (const each of latest.follow(leaver.signal, 5000)) after.push(each)
  t.same(after, [9])
  t.equal(clock.pending, 0)

  const turns = new Turnstile(1)
  const live = new AbortController().signal
  const out = await turns.enter(live)
  const order: string[] = []
  const second = turns.enter(live).then(leave => { order.push('second'); return leave })
  const gone = new AbortController()
  const third = turns.enter(gone.signal)
  gone.abort(new Error('left'))
  await t.rejects(third, { message: 'left' })
  await t.rejects(turns.enter(gone.signal), { message: 'left' })
  t.same(order, [])
  out()
  const leave = await second
  leave()
  leave()
  const inside = await turns.enter(live)
  let isIn = false
  const next = turns.enter(live).then(way => { isIn = true; return way })
  await Promise.resolve()
  t.notOk(isIn, 'who leaves twice makes room for one')
  inside()
  ;(await next)()
  t.same(order, ['second'])
})

t.test('a pull adds up over its files, and the row of its model keeps what its owner wrote', async t => {
  const file = { hf_filename: 'a.gguf', kind: 'model', dest: '/m/a.gguf', staging: '/m/.tmp', key: 'k', size: 100, sha256: 'x', gitSha1: null, checked: null }
  const record = hubRecordSchema.parse({ repo: 'o/r', commit: 'c', files: [file, { ...file, hf_filename: 'p.gguf', kind: 'mmproj', dest: '/m/p.gguf', size: 10 }], origin: 'curated', bytes: 30 })
  const job = {
    id: 'j', kind: 'model-pull', target: 'm', state: 'running', progress: 0, message: '', error: null, data: {}, created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '', finished_at: null
  } as ReturnType<JobStore['create']>
  const stored = { bytes_downloaded: 30, bytes_total: 110, speed_bps: 0, eta_s: null, sha256: null, path: null }
  t.match(hubSnapshot(job, record, null), stored)
  t.match(hubSnapshot(job, record, { done: [50, 10], speedBps: 25, message: 'waiting' }), { bytes_downloaded: 60, eta_s: 2, message: 'waiting' })
  t.match(hubSnapshot({ ...job, state: 'completed', finished_at: '2026-01-01T00:00:05.000Z' }, { ...record, files: record.files.map(each => ({ ...each, checked: 'x' })) }, null),
    { bytes_downloaded: 110, sha256: 'x', path: '/m/a.gguf', finished_at: 1_767_225_605 })
  t.equal(hubRecordSchema.safeParse({ repo: 'o/r', commit: 'c', files: [] }).success, false)
  t.equal(hubRecordSchema.safeParse({ ...record, later: 'release' }).success, true)

  const before = { id: 'm', ...modelRowSchema.parse({ path: '/old', name: 'Mine', tags: ['t'], capabilities: ['embed'], defaults: { context_size: 512 }, metadata: { note: 1 } }) }
  t.match(pulledRow({ ...record, tags: ['curated'], capabilities: ['chat'], name: 'Theirs', license: 'mit' }, null, before), {
    path: '/m/a.gguf', name: 'Mine', license: 'mit', capabilities: ['embed'], tags: ['t', 'curated'], mmproj: '/m/p.gguf', size_bytes: 100,
    defaults: { context_size: 512 }, metadata: { note: 1, revision: 'c' }, hf_repo: 'o/r', hf_filename: 'a.gguf'
  })
})
