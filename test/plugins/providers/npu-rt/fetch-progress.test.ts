import t from 'tap'
import type { FetchProgress } from '../../../../kernel/contract/index.js'
import { fetchProgress } from '../../../../plugins/providers/npu-rt/fetch-progress.js'

const MIB = 1024 * 1024
const nothing: FetchProgress = { folder: null, files: [], current: null, message: '', failure: null }
const after = (lines: readonly string[], from = nothing): FetchProgress => lines.reduce(fetchProgress, from)

const HEAD = [
  '[FLM]  Model: llama3.2:1b', '[FLM]  Name: Llama-3.2-1B-NPU2', '[FLM]  Missing files (2):', '  - config.json', '  - model.q4nx',
  '[FLM]  Present files (1):', '  - tokenizer.json', '[FLM]  Downloading 2 missing files...', '[FLM]  Files to download (1200.50 MB): ',
  '  - config.json (0.50 MB)', '  - model.q4nx (1200.00 MB)', '[FLM]  Downloading 1/2: config.json'
]
const config = { path: 'Llama-3.2-1B-NPU2/config.json', sizeBytes: MIB / 2, doneBytes: 0 }
const weights = { path: 'Llama-3.2-1B-NPU2/model.q4nx', sizeBytes: 1200 * MIB, doneBytes: 0 }
const begun = after(HEAD)
const first = after(['\u001b[?25h[FLM]  Checking Hash...', '[FLM]  Download completed: /m/models/Llama-3.2-1B-NPU2/config.json', '\r[FLM]  Overall progress:  1/2 files', '[FLM]  Downloading 2/2: model.q4nx'], begun)

t.test('what it fetches, and how far it is', async t => {
  t.strictSame(begun, { folder: 'Llama-3.2-1B-NPU2', files: [config, weights], current: config.path, message: '', failure: null }, 'files without a size are not fetched')
  t.strictSame(first.files, [{ ...config, doneBytes: config.sizeBytes }, weights])
  const drawn = (text: string): FetchProgress => fetchProgress(first, text)
  t.equal(drawn('\u001b[?25l\r\u001b[K[FLM]  Downloading: 25.0% (300.0MB / 1200.0MB)').files[1]!.doneBytes, 300 * MIB)
  t.equal(drawn('\r\u001b[K[FLM]  Downloading: 1.0% (12.0MB / 1200.0MB)\r\u001b[K[FLM]  Downloading: 50.0% (600.0MB / 1200.0MB)\u001b[?25h').files[1]!.doneBytes, 600 * MIB, 'the last of many')
  t.equal(drawn('\r\u001b[K[FLM]  Downloading: 50.0% (100.0MB / 200.0MB)').files[1]!.doneBytes, 1100 * MIB, 'resumed: the share is of what was left')
  t.equal(drawn('\r\u001b[K[FLM]  Downloading: 0.0% (0.0MB / 9999.0MB)').files[1]!.doneBytes, 0)
  t.equal(fetchProgress(begun, '\r\u001b[K[FLM]  Downloading: 100.0% (0.0MB / 0.0MB)').files[1]!.doneBytes, 0, 'of another file')
})

t.test('what it does and why it fails', async t => {
  const cases: ReadonlyArray<readonly [title: string, lines: readonly string[], message: string, failure: string | null]> = [
    ['resuming', ['[FLM]  Resuming download: /m/models/x/model.q4nx'], '', null],
    ['checking', ['[FLM]  Checking Hash...'], 'checking', null],
    ['a broken connection', ['CURL error: Timeout was reached', '[FLM]  Download failed (attempt 1/3)', '[FLM]  Retrying...'], 'trying again: 1 of 3 tries failed', 'Timeout was reached'],
    ['that went well after all', ['CURL error: Timeout was reached', '[FLM]  Download completed: C:\\m\\model.q4nx'], '', null],
    ['for good', ['CURL error: Timeout was reached', 'Failed to download: https://h/x', '[ERROR]  Failed to download model files.', '[ERROR]  Failed to pull model: x:1b'], '', 'Timeout was reached'],
    ['wrong bytes', ['[FLM]  Hash not matched!', '[ERROR]  Failed to download model files.'], '', 'a file does not match its repository: its hash differs'],
    ['unknown', ['[ERROR]  Model not found: x:1b; Please check with `flm list` and try again.'], '', 'Model not found: x:1b; Please check with `flm list` and try again.'],
    ['nothing but that', ['[ERROR]  Failed to pull model: x:1b'], '', 'Failed to pull model: x:1b'],
    ['what it was told', ['Error parsing arguments: unrecognised option', '', 'noise', '[WARNING]  This model may not be compatible'], '', null]
  ]
  for (const [title, lines, message, failure] of cases) t.match(after(lines, first), { message, failure }, title)
})

t.test('names that lead elsewhere are no files', async t => {
  for (const line of ['  - ../x (1.00 MB)', '  - /etc/passwd (1.00 MB)', '  - .. (1.00 MB)', '  - a/b (1.00 MB)', '  - .hidden (1.00 MB)']) {
    t.equal(fetchProgress(begun, line), begun, line)
  }
  for (const line of ['[FLM]  Name: ..', '[FLM]  Name: a/b', '[FLM]  Name: /x']) t.equal(fetchProgress(nothing, line).folder, null, line)
  t.equal(fetchProgress(nothing, '  - x (1.00 MB)'), nothing, 'nor are files of no folder')
})
