"""Running figures over rows, for manifests: in bounded memory, the same whether one builds or validates."""

from dataclasses import dataclass


@dataclass(slots=True)
class Range:
    """The smallest and the largest of some counts."""

    smallest: int | None = None
    largest: int | None = None

    def add(self, value: int) -> None:
        """Takes in the next count."""
        if self.smallest is None or value < self.smallest:
            self.smallest = value
        if self.largest is None or value > self.largest:
            self.largest = value

    def merge(self, other: "Range") -> None:
        """Takes in what another has counted."""
        for value in (other.smallest, other.largest):
            if value is not None:
                self.add(value)

    def summary(self) -> dict[str, int]:
        """For the manifest; zeros where nothing was counted."""
        return {"smallest": self.smallest or 0, "largest": self.largest or 0}


@dataclass(slots=True)
class Mean:
    """The mean of what has a value, and how much has none."""

    total: float = 0.0
    counted: int = 0
    excluded: int = 0

    def add(self, value: float | None) -> None:
        """Takes in the next value."""
        if value is None:
            self.excluded += 1
        else:
            self.total += value
            self.counted += 1

    @property
    def value(self) -> float | None:
        """The mean to four digits; None over nothing."""
        return round(self.total / self.counted, 4) if self.counted else None
