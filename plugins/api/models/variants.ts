import type { HubFile, HubRepo } from '../../services/hub/ref.js'

export interface Variant {
  /** File to ask for: the first of a split model. */
  readonly id: string
  readonly size_bytes: number
  readonly size: string
  readonly info: string
}

const SHARD = /^(.+)-(\d{5})-of-(\d{5})\.gguf$/i
const QUANT = /(?:^|[-._])((?:UD-)?(?:IQ\d_[A-Z]+|Q\d(?:_[0-9K])?(?:_[A-Z]+)?|TQ\d_\d|BF16|F16|F32|MXFP4(?:_MOE)?))(?=[-._]|$)/i

/** The models of a repository: GGUF files, the parts of a split one as one, smallest first. Pure. */
export function variantsOf (repo: Pick<HubRepo, 'files'>): Variant[] {
  const groups = new Map<string, { readonly first: HubFile, size: number, found: number, readonly parts: number }>()
  for (const file of [...repo.files].sort((a, b) => a.path < b.path ? -1 : 1)) {
    if (!/\.gguf$/i.test(file.path)) continue
    const shard = SHARD.exec(file.path)
    const key = shard === null ? file.path : `${shard[1]}\0${shard[3]}`
    const group = groups.get(key)
    if (group === undefined) {
      groups.set(key, { first: file, size: file.size, found: 1, parts: shard === null ? 1 : Number(shard[3]) })
    } else {
      group.size += file.size
      group.found++
    }
  }
  return [...groups.values()].sort((a, b) => a.size - b.size).map(({ first, size, found, parts }) => ({
    id: first.path, size_bytes: size, size: sizeText(size), info: infoOf(first.path, found, parts)
  }))
}

function infoOf (path: string, found: number, parts: number): string {
  const name = path.slice(path.lastIndexOf('/') + 1).replace(SHARD, '$1.gguf').replace(/\.gguf$/i, '')
  return [
    /(^|[^a-z0-9])mmproj([^a-z0-9]|$)/i.test(name) ? 'projector' : '',
    QUANT.exec(name)?.[1]?.toUpperCase() ?? '',
    parts === 1 ? '' : found === parts ? `${parts} parts` : `${found} of ${parts} parts`
  ].filter(text => text !== '').join(', ')
}

/** Pure. */
export function sizeText (bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]!}`
}
