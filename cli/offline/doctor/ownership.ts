/** What is seen of one path of a home. */
export interface PathFacts {
  readonly path: string
  readonly label: string
  /** Null where there is nothing. */
  readonly stats: {
    readonly uid: number
    readonly gid: number
    readonly mode: number
    readonly links: number
    readonly kind: 'file' | 'folder' | 'link' | 'other'
  } | null
  /** It holds secrets: only the owner may read it. */
  readonly isSecret: boolean
}

export interface PathVerdict {
  readonly path: string
  readonly label: string
  readonly status: 'ok' | 'drift' | 'absent'
  readonly detail: string
  /** What would set it right; null where there is nothing to do, or nothing that is safe to do. */
  readonly repair: { readonly uid: number, readonly gid: number, readonly mode: number } | null
}

export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Whether a path belongs to the gateway's user, and is closed to users who should not be there. Pure. */
export function judgePath ({ path, label, stats, isSecret }: PathFacts, owner: Owner): PathVerdict {
  if (stats === null) return { path, label, status: 'absent', detail: '', repair: null }
  // what a link leads to has its own place, and a link's own owner means nothing
  if (stats.kind === 'link') return { path, label, status: 'ok', detail: 'a link', repair: null }
  const bits = stats.mode & 0o7777
  const mode = bits & ~(isSecret ? 0o077 : 0o002)
  const problems = [
    ...stats.uid === owner.uid ? [] : [`belongs to user ${stats.uid} instead of ${owner.uid}`],
    ...mode === bits ? [] : [`mode ${octal(bits)} instead of ${octal(mode)}`]
  ]
  if (problems.length === 0) return { path, label, status: 'ok', detail: '', repair: null }
  const isSafe = stats.kind === 'folder' || (stats.kind === 'file' && stats.links === 1)
  const repair = isSafe ? { uid: owner.uid, gid: stats.uid === owner.uid ? stats.gid : owner.gid, mode } : null
  return { path, label, status: 'drift', detail: problems.join(', ') + (isSafe ? '' : '; it has other hard links, so check it yourself'), repair }
}

function octal (mode: number): string {
  return mode.toString(8).padStart(4, '0')
}
