import { durationText, sizeText } from '../terminal/size-text.js'
import { oneLine, textWidth, truncate } from '../terminal/text-width.js'
import type { PullSnapshot } from './snapshot.js'

const LEAST_BAR = 10
const MOST_BAR = 30

/** A pull on one line of at most `width` columns: name, bar, share, amount, rate, time to go. Pure. */
export function progressLine (snapshot: PullSnapshot, width: number): string {
  const { model_id: id, state, bytes_total: total, message } = snapshot
  const share = shareOf(snapshot)
  const facts = [
    `${String(Math.floor(share * 100)).padStart(3)} %`,
    `${sizeText(snapshot.bytes_downloaded)} of ${sizeText(total)}`,
    ...state === 'queued' ? ['waiting for its turn'] : message !== '' ? [oneLine(message)] : pace(snapshot)
  ].join('  ')
  const name = truncate(oneLine(id), Math.max(12, Math.floor(width / 3)))
  const room = width - textWidth(name) - textWidth(facts) - 6
  const bar = room >= LEAST_BAR ? `  [${barOf(share, Math.min(room, MOST_BAR))}]` : ''
  return truncate(`${name}${bar}  ${facts}`, width)
}

/** The same for a log: `qwen3-4b: 40 %, 1.0 GB of 2.5 GB, 54.0 MB/s, 28s to go`. Pure. */
export function progressText (snapshot: PullSnapshot): string {
  const { model_id: id, bytes_downloaded: done, bytes_total: total, message } = snapshot
  const facts = message === '' ? pace(snapshot) : [oneLine(message)]
  return [`${oneLine(id)}: ${Math.floor(shareOf(snapshot) * 100)} %`, `${sizeText(done)} of ${sizeText(total)}`, ...facts].join(', ')
}

function pace ({ speed_bps: speed, eta_s: eta }: PullSnapshot): string[] {
  return [...speed > 0 ? [`${sizeText(speed)}/s`] : [], ...eta == null ? [] : [`${durationText(eta)} to go`]]
}

function shareOf ({ bytes_downloaded: done, bytes_total: total, state }: PullSnapshot): number {
  return total === 0 ? (state === 'completed' ? 1 : 0) : Math.min(1, done / total)
}

/** Pure. */
export function barOf (share: number, width: number): string {
  const full = Math.round(share * width)
  return `${'='.repeat(Math.max(0, full - 1))}${full > 0 ? '>' : ''}${' '.repeat(width - full)}`
}
