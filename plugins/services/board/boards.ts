import type { Database } from './database.js'
import { boardError } from './errors.js'
import type { BoardView, BoardWords } from './ref.js'

const DEFAULT = 'default'
const MOST_BOARDS = 100

interface Row {
  readonly slug: string
  readonly name: string
  readonly icon: string | null
  readonly description: string
  readonly count: number
}

/** The boards, and which of them is meant where none is named. The default one is always there. */
export class Boards {
  readonly #database: Database
  readonly #now: () => number

  constructor (database: Database, now: () => number) {
    this.#database = database
    this.#now = now
    database.run('INSERT OR IGNORE INTO boards (slug, name, created) VALUES (?, ?, ?)', DEFAULT, 'operator board', now())
  }

  get current (): string {
    return this.#database.get<{ value: string }>('SELECT value FROM settings WHERE key = \'board\'')?.value ?? DEFAULT
  }

  list (): readonly BoardView[] {
    const { current } = this
    return this.#database.all<Row>(`SELECT boards.*, (SELECT count(*) FROM tasks WHERE board = slug AND status <> 'archived') AS count
      FROM boards ORDER BY created, slug`).map(row => viewOf(row, current))
  }

  slugOf (board: string | undefined): string {
    const slug = board ?? this.current
    if (this.#database.get('SELECT slug FROM boards WHERE slug = ?', slug) === undefined) {
      throw boardError('board.not_found', `no board is called '${slug}'; GET /api/board/boards lists them`, { details: { board: slug } })
    }
    return slug
  }

  create (slug: string, { name = slug, icon = null, desc = '' }: BoardWords): BoardView {
    const boards = this.list()
    if (boards.some(board => board.slug === slug)) throw boardError('board.exists', `a board is already called '${slug}'`, { details: { board: slug } })
    if (boards.length >= MOST_BOARDS) throw boardError('board.full', `there are ${MOST_BOARDS} boards, which is the maximum`)
    this.#database.run('INSERT INTO boards (slug, name, icon, description, created) VALUES (?, ?, ?, ?, ?)', slug, name, icon, desc, this.#now())
    return this.#view(slug)
  }

  change (slug: string, { name, icon, desc }: BoardWords): BoardView {
    const before = this.#view(this.slugOf(slug))
    this.#database.run('UPDATE boards SET name = ?, icon = ?, description = ? WHERE slug = ?',
      name ?? before.name, icon === undefined ? before.icon : icon, desc ?? before.desc, slug)
    return this.#view(slug)
  }

  remove (slug: string): void {
    this.slugOf(slug)
    if (slug === DEFAULT) throw boardError('board.invalid_body', 'the default board cannot be deleted; delete its tasks instead')
    this.#database.transaction(() => {
      if (this.current === slug) this.switch(DEFAULT)
      this.#database.run('DELETE FROM boards WHERE slug = ?', slug)
    })
  }

  switch (slug: string): void {
    this.#database.run('INSERT INTO settings (key, value) VALUES (\'board\', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value', this.slugOf(slug))
  }

  #view (slug: string): BoardView {
    return this.list().find(board => board.slug === slug)!
  }
}

function viewOf ({ slug, name, icon, description, count }: Row, current: string): BoardView {
  return { slug, name, icon, desc: description, count, current: slug === current }
}
