import { appendFileSync, existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { orders, whileOrdered } from './orders.js'
import { filesOf, folderOf, isInstalled, nameOf, pathOf, sizeOf } from './store.js'

const MIB = 1024 * 1024
const STEP = 64 * 1024

/**
 * `flm pull` as its sources of 1.0 print it (src/pull/model_downloader.cpp, download_model.cpp), progress drawn over with
 * carriage returns at every piece. Orders: `stall-at FILE BYTES` waits at that byte of a file until the order is gone, `offline`
 * cannot ask the hub, `break` breaks every connection, `corrupt` receives wrong bytes. Returns whether it has the model.
 */
export async function pullModel (tag: string): Promise<boolean> {
  if (isInstalled(tag)) {
    print('FLM', 'Model is already downloaded.')
    print('FLM', 'All required files are present.')
    return true
  }
  print('FLM', `Model: ${tag}`)
  print('FLM', `Name: ${nameOf(tag)}`)
  const files = filesOf(tag)
  const missing = files.filter(file => !existsSync(pathOf(tag, file)))
  const present = files.filter(file => existsSync(pathOf(tag, file)))
  if (missing.length > 0) list(`Missing files (${missing.length}):`, missing)
  if (present.length > 0) list(`Present files (${present.length}):`, present)
  mkdirSync(folderOf(tag), { recursive: true })
  if (orders().includes('offline')) {
    console.error('CURL error: Could not resolve hostname')
    print('ERROR', 'Error building download list: [json.exception.parse_error.101] parse error at line 1, column 1')
    print('FLM', `No files to download for model: ${tag}`)
    return true
  }
  const wanted = files.filter(file => bytesAt(tag, file) < sizeOf(file))
  print('FLM', `Downloading ${wanted.length} missing files...`)
  print('FLM', `Files to download (${mib(wanted.reduce((sum, file) => sum + sizeOf(file), 0), 2)} MB): `)
  for (const file of wanted) console.log(`  - ${file} (${mib(sizeOf(file), 2)} MB)`)
  for (const [i, file] of wanted.entries()) {
    print('FLM', `Downloading ${i + 1}/${wanted.length}: ${file}`)
    if (!await withRetries(tag, file)) {
      console.error(`Failed to download: https://hub.test/FastFlowLM/${nameOf(tag)}/resolve/main/${file}?download=true`)
      print('ERROR', 'Failed to download model files.')
      return false
    }
    process.stdout.write(`\r[FLM]  Overall progress:  ${i + 1}/${wanted.length} files\n`)
  }
  process.stdout.write('\u001b[?25h')
  print('FLM', 'All downloads completed successfully!')
  print('FLM', 'Model downloaded successfully!')
  print('FLM', 'All files verified successfully.')
  return true
}

async function withRetries (tag: string, file: string): Promise<boolean> {
  for (let attempt = 1; attempt <= 3; attempt++) {
    if (await fetchFile(tag, file)) return true
    print('FLM', `Download failed (attempt ${attempt}/3)`)
    if (attempt < 3) print('FLM', 'Retrying...')
  }
  return false
}

async function fetchFile (tag: string, file: string): Promise<boolean> {
  const path = pathOf(tag, file)
  const from = bytesAt(tag, file)
  const left = sizeOf(file) - from
  process.stdout.write('\u001b[?25l')
  if (from > 0) print('FLM', `Resuming download: ${path}`)
  let isDrawn = false
  for (let now = from; now < sizeOf(file);) {
    await stalled(file, now)
    if (orders().includes('break')) {
      process.stdout.write('\u001b[?25h')
      console.error('CURL error: Failure when receiving data from the peer')
      return false
    }
    const piece = Math.min(STEP, sizeOf(file) - now)
    appendFileSync(path, Buffer.alloc(piece))
    now += piece
    const share = (now - from) / left * 100
    process.stdout.write(`\r\u001b[K[FLM]  Downloading: ${share.toFixed(1)}% (${mib(now - from, 1)}MB / ${mib(left, 1)}MB)`)
    isDrawn = true
    await pause(1)
  }
  process.stdout.write(`\u001b[?25h${isDrawn ? '\n' : ''}`)
  print('FLM', 'Checking Hash...')
  if (orders().includes('corrupt')) {
    print('FLM', 'Hash not matched!')
    rmSync(path)
    return false
  }
  print('FLM', `Download completed: ${path}`)
  return true
}

async function stalled (file: string, now: number): Promise<void> {
  await whileOrdered(() => {
    const [, name, at] = /^stall-at (\S+) (\d+)$/m.exec(orders()) ?? []
    return file === name && now >= Number(at)
  })
}

function bytesAt (tag: string, file: string): number {
  return existsSync(pathOf(tag, file)) ? statSync(pathOf(tag, file)).size : 0
}

function list (title: string, names: readonly string[]): void {
  print('FLM', title)
  for (const name of names) console.log(`  - ${name}`)
}

function print (level: string, text: string): void {
  console.log(`[${level}]  ${text}`)
}

function mib (bytes: number, digits: number): string {
  return (bytes / MIB).toFixed(digits)
}
