"""The old tools by their own names: svm-train, svm-predict, svm-scale."""
