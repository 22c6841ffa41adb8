import { defineErrors } from 'svc-gateway/plugin'

export const boardError = defineErrors('board', {
  task_not_found: { status: 404, when: 'no task of the board has this id' },
  run_not_found: { status: 404, when: 'no run has this id' },
  profile_not_found: { status: 404, when: 'no agent that can be given tasks has this id' },
  not_found: { status: 404, when: 'no board has this slug' },
  stale_write: { status: 409, when: 'the task was changed since the revision that If-Match names' },
  invalid_status: { status: 409, when: 'the task cannot be moved to that lane' },
  link_invalid: { status: 409, when: 'a task would depend on itself, or two on each other' },
  slug_required: { status: 409, when: 'a board is created without a slug' },
  exists: { status: 409, when: 'a board with this slug exists' },
  invalid_body: { status: 400, when: 'the body of a request to the board is invalid' },
  full: { status: 409, when: 'the limit of tasks on a board or links of a task is reached' },
  no_plan: { status: 502, when: 'a model gave no valid plan for a task, or not in time; nothing was changed' },
  too_deep: { status: 409, when: 'splitting the task would exceed the limit of levels' },
  nothing_to_undo: { status: 409, when: 'a task was neither specified nor decomposed' },
  database_failed: { status: 500, when: 'the database of the board cannot be opened' }
})
