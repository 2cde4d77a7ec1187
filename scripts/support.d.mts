/** What the set-up shares with its tests: its scripts run before there is anything that could compile them. */
export const ROOT: string;
export const inventory: (path: string, except: readonly string[]) => string;
