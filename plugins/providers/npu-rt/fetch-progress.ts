import type { FetchFile, FetchProgress } from 'svc-gateway/plugin'

const MIB = 1024 * 1024

/** `  - model.q4nx (1234.56 MB)`: sizes stand only in the list of what will be fetched. Its MB are MiB. */
const FILE = /^- (\w[\w. -]*) \((\d+(?:\.\d+)?) MB\)$/
/** `[FLM]  Downloading: 12.3% (1.5MB / 12.0MB)`, of what was left of the file when this connection began. */
const SHARE = /^Downloading: [\d.]+% \(([\d.]+)MB \/ ([\d.]+)MB\)$/
/** Of all that it says, only this tells which file its shares are of. */
const BEGUN = /^Downloading \d+\/\d+: (.+)$/
const NAME = /^Name: (\w[\w.-]*)$/
const COMPLETED = /^Download completed: (?:.*[/\\])?([^/\\]+)$/
const ATTEMPT = /^Download failed \(attempt (\d+)\/(\d+)\)$/
const TAGGED = /^\[(FLM|WARNING|ERROR)\] {2}(.*)$/
/** Said after the reason, without one. */
const SUMMARY = /^Failed to (?:download|pull) (?:HuggingFace )?model/

/** What steers a terminal. */
const STEERING = /\u001b\[[\d;?]*[A-Za-z]/g

/**
 * What a line of `flm pull` tells (its src/pull/model_downloader.cpp and download_model.cpp). It draws its progress over with
 * carriage returns, so one line may hold many of its reports: the last one counts. Pure.
 */
export function fetchProgress (known: FetchProgress, line: string): FetchProgress {
  const text = line.replaceAll(STEERING, '').split('\r').map(part => part.trim()).filter(part => part !== '').at(-1) ?? ''
  const file = FILE.exec(text)
  if (file !== null) return withFile(known, file[1]!, Math.round(Number(file[2]) * MIB))
  // libcurl's reason, on stderr
  if (text.startsWith('CURL error: ')) return { ...known, failure: text.slice('CURL error: '.length) }
  const [, level, said = ''] = TAGGED.exec(text) ?? []
  if (level === 'ERROR') return { ...known, failure: SUMMARY.test(said) ? known.failure ?? said : said }
  return level === 'FLM' ? toldBy(known, said) : known
}

function toldBy (known: FetchProgress, said: string): FetchProgress {
  const name = NAME.exec(said)
  if (name !== null) return { ...known, folder: name[1]! }
  const share = SHARE.exec(said)
  if (share !== null) {
    const left = Math.round((Number(share[2]) - Number(share[1])) * MIB)
    return withCurrent(known, ({ sizeBytes }) => sizeBytes - left)
  }
  const begun = BEGUN.exec(said)
  if (begun !== null) return { ...known, current: known.files.find(file => nameOf(file) === begun[1])?.path ?? null, message: '' }
  const completed = COMPLETED.exec(said)
  if (completed !== null) {
    const files = known.files.map(file => nameOf(file) === completed[1] ? { ...file, doneBytes: file.sizeBytes } : file)
    return { ...known, files, message: '', failure: null }
  }
  const attempt = ATTEMPT.exec(said)
  if (attempt !== null) return { ...known, message: `trying again: ${attempt[1]} of ${attempt[2]} tries failed` }
  if (said === 'Checking Hash...') return { ...known, message: 'checking' }
  if (said === 'Hash not matched!') return { ...withCurrent(known, () => 0), failure: 'a file does not match its repository: its hash differs' }
  return said.startsWith('Resuming download: ') ? { ...known, message: '' } : known
}

function withFile (known: FetchProgress, name: string, sizeBytes: number): FetchProgress {
  if (known.folder === null) return known
  const file: FetchFile = { path: `${known.folder}/${name}`, sizeBytes, doneBytes: 0 }
  return { ...known, files: [...known.files.filter(({ path }) => path !== file.path), file] }
}

function withCurrent (known: FetchProgress, doneBytes: (file: FetchFile) => number): FetchProgress {
  const within = (file: FetchFile): number => Math.max(0, Math.min(file.sizeBytes, doneBytes(file)))
  return { ...known, files: known.files.map(file => file.path === known.current ? { ...file, doneBytes: within(file) } : file) }
}

function nameOf ({ path }: FetchFile): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
