/** How large a run is: `smoke` only shows that it runs. */
export interface Scale {
  readonly smoke: boolean;
}

/** Prints its figures; true where every target was met. */
export type Bench = (scale: Scale) => Promise<boolean>;
