import { defineErrors } from 'svc-gateway/plugin'

export const boardError = defineErrors('board', {
  task_not_found: { status: 404, when: 'no task of the board has this id' },
  run_not_found: { status: 404, when: 'no run has this id' },
  profile_not_found: { status: 404, when: 'no agent that can be given tasks has this id' },
  not_found: { status: 404, when: 'no board has this slug' },
  stale_write: { status: 409, when: 'the task was changed since the revision that If-Match names' },
  invalid_status: { status: 409, when: 'the task cannot be moved to that lane' },
  link_invalid: { status: 409, when: 'a task would depend on itself, or two on each other' },
  slug_required: { status: 409, when: 'a board is made without a slug' },
  exists: { status: 409, when: 'a board has this slug' },
  invalid_body: { status: 400, when: 'a body of the board does not fit' },
  full: { status: 409, when: 'a board has as many tasks, or a task as many links, as it may' },
  no_plan: { status: 502, when: 'a model gave no plan for a task that fits, or not in time; nothing was changed' },
  too_deep: { status: 409, when: 'a part of a task was to be split more often than parts may be' },
  nothing_to_undo: { status: 409, when: 'a task was neither specified nor decomposed' },
  database_failed: { status: 500, when: 'the database of the board cannot be opened' }
})
